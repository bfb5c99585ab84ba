"""What a model calls: the decision, the tool itself or the meta-tool, the audit. For sessions only."""
