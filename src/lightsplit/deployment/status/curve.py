"""A curve that stays short however long the run is."""

_MOST_POINTS = 512


class Curve:
    """Points in the order of their steps; when there are many, every second one goes.

    Attributes:
        points: pairs of step and value.
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self._least_distance = 1

    def add(self, step: int, value: float) -> None:
        """Add a point, unless it lies too close to the last one."""
        if self.points and step < self.points[-1][0] + self._least_distance:
            return
        points = [*self.points, (step, value)]  # readers keep the old list
        if len(points) > _MOST_POINTS:
            points = points[::2]
            self._least_distance = max(1, 2 * (step - points[0][0]) // _MOST_POINTS)
        self.points = points
