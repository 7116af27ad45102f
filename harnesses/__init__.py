"""Harnesses as constructors from POMDP to POMDP: induced models, context maps, losses, attribution, ablation arms.

Data flows spec -> harness -> induced POMDP -> case -> attribution, context loss, description or memo. May import
pomdp, never experiments. Source: M1 Def 1.4.1 (the harness-induced POMDP).
"""
