"""What peers.py is made of: cases, start values, the processes, the rounds, the tables."""
