"""Studies: how they are defined, run, analysed and printed. Imports pomdp and harnesses."""
