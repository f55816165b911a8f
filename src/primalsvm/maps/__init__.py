"""Feature maps φ with ⟨φ(s), φ(t)⟩ ≈ k(s, t), as plain functions of blocks of rows."""
