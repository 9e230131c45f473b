"""Code that the labs share: a cell's plan for the agent, the agent's output, and the samples made
from it."""
