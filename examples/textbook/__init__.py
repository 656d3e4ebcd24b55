"""The systems of the source texts, one module each, on the simulator of the robots.

A module of a system has a docstring (the system, its equations, what to observe) and

    SOURCE: str                        the text and its section
    ROBOT: str                         its robot, as `load_robot` and `robot:=` call it
    quantities() -> list[Quantity]     what the text derives, beside ours
    figure(figure: Figure) -> None     draws what there is to see

Every value comes from the simulator, from `RobotModel` or from `contact_sim.support`. A module
that is no system has no SOURCE.
"""
