"""What people and programs are given: tables, figures, drawings, words, notices."""
