"""The tools of a speaker in front of a class: keys that lead from step to step, and a spot that follows the pointer."""

from pathlib import Path

from gptviz.components.kit import silent

# It listens to the speaker's keys: Page Down and Page Up lead to the next step of a lesson and back, L is the spot.
presenter = silent(Path(__file__).parent)
