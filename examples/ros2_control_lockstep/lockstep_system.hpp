// The hardware of a ros2_control system that is simulated by contact_sim in lockstep.
//
// read() waits for the state of the instant at which the simulation stands still, write() answers
// it with commands that bear its stamp; only then does simulated time go on.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <hardware_interface/system_interface.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_lifecycle/state.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/header.hpp>

namespace ros2_control_lockstep
{

class LockstepSystem : public hardware_interface::SystemInterface
{
public:
  hardware_interface::CallbackReturn on_init(
    const hardware_interface::HardwareComponentInterfaceParams & params) override;
  hardware_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override;
  hardware_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &) override;
  hardware_interface::return_type read(
    const rclcpp::Time & time, const rclcpp::Duration &) override;
  hardware_interface::return_type write(const rclcpp::Time &, const rclcpp::Duration &) override;

private:
  using JointState = sensor_msgs::msg::JointState;

  void take(const JointState & state);
  std::vector<JointState> commands();
  void publish();

  rclcpp::Subscription<JointState>::SharedPtr states_;
  rclcpp::Publisher<JointState>::SharedPtr publisher_;
  rclcpp::Publisher<std_msgs::msg::Header>::SharedPtr acknowledgement_;
  double timeout_ = 10.0;  // wall time to wait for a state [s]

  std::mutex mutex_;
  std::condition_variable news_;
  JointState state_;                   // the last one
  std::int64_t stamp_ = 0;             // of it [ns]; 0: none has come
  std::int64_t read_ = 0;              // stamp of the state that was read last [ns]
  std::int64_t answered_ = 0;          // stamp of the last answer [ns]; 0: none since activation
  std::vector<JointState> answer_;     // the last one; empty: an acknowledgement
  std::map<std::string, double> hold_;  // positions of joints that nobody commands
};

}  // namespace ros2_control_lockstep
