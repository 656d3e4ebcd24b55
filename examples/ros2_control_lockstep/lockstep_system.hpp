// The hardware of a ros2_control system that is simulated by contact_sim in lockstep.
//
// read() waits for the state of the instant at which the simulation stands still, write() answers
// it with commands that bear its stamp; only then does simulated time go on. States and answers
// take the topics of the simulation, or its Unix socket where the parameter `socket` has a path.
// The clock of the controller manager is set here, to the stamp of the state.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <hardware_interface/system_interface.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp/serialization.hpp>
#include <rclcpp_lifecycle/state.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/header.hpp>

#include "lockstep_socket.hpp"

namespace ros2_control_lockstep
{

class LockstepSystem : public hardware_interface::SystemInterface
{
public:
  hardware_interface::CallbackReturn on_init(
    const hardware_interface::HardwareComponentInterfaceParams & params) override;
  hardware_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override;
  hardware_interface::CallbackReturn on_cleanup(const rclcpp_lifecycle::State &) override;
  hardware_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &) override;
  hardware_interface::return_type read(const rclcpp::Time &, const rclcpp::Duration &) override;
  hardware_interface::return_type write(const rclcpp::Time &, const rclcpp::Duration &) override;

private:
  using JointState = sensor_msgs::msg::JointState;
  using Header = std_msgs::msg::Header;

  // A joint of the description; a handle is empty where it lacks the interface.
  struct Joint
  {
    std::string name;
    std::array<hardware_interface::StateInterface::SharedPtr, 3> states;
    std::array<hardware_interface::CommandInterface::SharedPtr, 3> commands;
    std::size_t place = 0;  // in the message
    double hold = 0.0;      // first position, where nobody commands it
    bool seen = false;      // it has one
  };

  std::string parameter(const std::string & name, const std::string & fallback) const;
  void subscribe();
  bool receive(double patience);
  void find_joints();
  void use_state();
  void make_answer();
  void publish();

  rclcpp::Subscription<JointState>::SharedPtr states_;
  std::unique_ptr<rclcpp::WaitSet> wait_set_;  // for these
  rclcpp::Publisher<JointState>::SharedPtr publisher_;
  rclcpp::Publisher<Header>::SharedPtr acknowledgement_;
  std::unique_ptr<LockstepSocket> socket_;  // instead of these
  rclcpp::Serialization<JointState> joint_states_;
  rclcpp::Serialization<Header> headers_;
  rclcpp::SerializedMessage bytes_;
  double timeout_ = 10.0;  // wall time to wait for a simulation that listens at the socket [s]

  std::mutex mutex_;
  std::vector<Joint> joints_;           // in the order of the description
  JointState state_;                    // the last one
  std::int64_t stamp_ = 0;              // of it [ns]; 0: none has come
  std::int64_t read_ = 0;               // stamp of the state that was read last [ns]
  std::int64_t answered_ = 0;           // stamp of the last answer [ns]; 0: none since activation
  std::array<JointState, 8> answers_;   // the last one, by the set of interfaces of its joints
  bool commanded_ = false;              // any joint is; otherwise it is an acknowledgement
};

}  // namespace ros2_control_lockstep
