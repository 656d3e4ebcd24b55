"""A controller on the lockstep socket, as LockstepSystem of examples/ros2_control_lockstep is."""

import socket
import time

from contact_sim.ros._lockstep_socket import ACKNOWLEDGEMENT, COMMAND, GREETING, LARGEST, REFUSAL

TIMEOUT = 30.0


class Peer:
    """A connection to the socket at `path`, once a simulation listens there."""

    def __init__(self, path, robot='', greeting=GREETING):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(TIMEOUT)
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                self.socket.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        self.socket.send(greeting + robot.encode())

    def receive(self):
        """Return the next packet, b'' after the last."""
        return self.socket.recv(LARGEST)

    def refusal(self):
        """Return the reason of a refusal, after which the simulation hangs up."""
        data = self.receive()
        assert data[:1] == REFUSAL
        assert self.receive() == b''
        return data[1:].decode()

    def command(self, data):
        self.socket.send(COMMAND + data)

    def acknowledge(self, data):
        self.socket.send(ACKNOWLEDGEMENT + data)

    def close(self):
        self.socket.close()
