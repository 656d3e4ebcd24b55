// A controller's end of the Unix socket of contact_sim, its parameter lockstep.socket.
//
// Its packets are the messages of the topics joint_states, joint_commands and lockstep_ack. No
// other thread is woken: the one that waits for a state receives it.

#pragma once

#include <string>

#include <rclcpp/serialized_message.hpp>

namespace ros2_control_lockstep
{

class LockstepSocket
{
public:
  // Connect within `timeout` wall seconds; std::runtime_error says why that fails. `robot` is one
  // of several in the simulation, or empty.
  LockstepSocket(const std::string & path, const std::string & robot, double timeout);
  ~LockstepSocket();
  LockstepSocket(const LockstepSocket &) = delete;
  LockstepSocket & operator=(const LockstepSocket &) = delete;

  // Wait for a JointState at most `patience` wall seconds; return whether it has come.
  // std::runtime_error: the simulation has gone, or refuses.
  bool receive(rclcpp::SerializedMessage & state, double patience);

  void send_command(const rclcpp::SerializedMessage & joint_state);
  void send_acknowledgement(const rclcpp::SerializedMessage & header);

private:
  void send(char kind, const rclcpp::SerializedMessage & message);

  int socket_;
};

}  // namespace ros2_control_lockstep
