"""What would the trail have cost otherwise? Statics, toolkits and initial toolkits that a trail speaks for."""
