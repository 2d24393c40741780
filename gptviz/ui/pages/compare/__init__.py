"""What the page Compare shows: two subjects side by side, in the views of other pages, and the difference."""
