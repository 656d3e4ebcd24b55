"""Contact problems, their answers, and the residuals of these."""
