"""What the labs share: one cell as a plan for the agent, what it says, and the samples made of
it."""
