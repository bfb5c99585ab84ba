"""May it run unasked? What demands that a person approves a call, what an approval is bound to, whether it counts."""
