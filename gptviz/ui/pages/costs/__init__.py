"""What the page Size and cost computes and says: counts by formula, and what training would take on this machine."""
