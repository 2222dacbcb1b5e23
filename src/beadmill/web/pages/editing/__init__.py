"""Documents edited by people on the screen: as a form, and as text."""
