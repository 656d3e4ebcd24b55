#include "lockstep_system.hpp"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>

#include <hardware_interface/types/hardware_interface_type_values.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace ros2_control_lockstep
{

using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

namespace
{
const char * const FIELDS[] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_EFFORT};

// Return the array of a message that an interface is about.
std::vector<double> & field(sensor_msgs::msg::JointState & message, std::size_t k)
{
  return k == 0 ? message.position : k == 1 ? message.velocity : message.effort;
}
}  // namespace

CallbackReturn LockstepSystem::on_init(
  const hardware_interface::HardwareComponentInterfaceParams & params)
{
  if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) {
    return CallbackReturn::ERROR;
  }
  const auto given = info_.hardware_parameters.find("timeout");
  if (given != info_.hardware_parameters.end()) {
    timeout_ = std::stod(given->second);
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn LockstepSystem::on_configure(const rclcpp_lifecycle::State &)
{
  const auto node = get_node();  // spun by the executor of the controller manager
  if (!node) {
    RCLCPP_ERROR(get_logger(), "no node: the controller manager has no executor");
    return CallbackReturn::ERROR;
  }
  const auto topic = [this](const std::string & name, const std::string & fallback) {
      const auto given = info_.hardware_parameters.find(name);
      return given == info_.hardware_parameters.end() ? fallback : given->second;
    };
  // RELIABLE: in lockstep a message that is lost would stop time.
  const rclcpp::QoS qos = rclcpp::QoS(100).reliable();
  publisher_ = node->create_publisher<JointState>(
    topic("joint_commands_topic", "joint_commands"), qos);
  acknowledgement_ = node->create_publisher<std_msgs::msg::Header>(
    topic("lockstep_ack_topic", "contact_sim/lockstep_ack"), qos);
  states_ = node->create_subscription<JointState>(
    topic("joint_states_topic", "joint_states"), qos,
    [this](const JointState & state) {take(state);});
  return CallbackReturn::SUCCESS;
}

CallbackReturn LockstepSystem::on_activate(const rclcpp_lifecycle::State &)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  answered_ = 0;
  return CallbackReturn::SUCCESS;
}

void LockstepSystem::take(const JointState & state)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = state;
  stamp_ = rclcpp::Time(state.header.stamp).nanoseconds();
  if (stamp_ == answered_) {
    publish();  // a state that comes twice: the answer was lost, or nobody listened yet
  }
  news_.notify_all();
}

return_type LockstepSystem::read(const rclcpp::Time & time, const rclcpp::Duration &)
{
  std::unique_lock<std::mutex> lock(mutex_);
  const auto there = [&] {return stamp_ >= time.nanoseconds();};
  if (!news_.wait_for(lock, std::chrono::duration<double>(timeout_), there)) {
    RCLCPP_ERROR(
      get_logger(), "no state of t = %.9g s within %g s, the last is of %.9g s", time.seconds(),
      timeout_, 1e-9 * static_cast<double>(stamp_));
    return return_type::ERROR;
  }
  for (std::size_t i = 0; i < state_.name.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const std::string interface = state_.name[i] + "/" + FIELDS[k];
      if (has_state(interface) && i < field(state_, k).size()) {
        set_state(interface, field(state_, k)[i]);
      }
    }
    hold_.emplace(state_.name[i], state_.position[i]);
  }
  read_ = stamp_;
  return return_type::OK;
}

// One message for each set of interfaces that joints are commanded by; none where none is.
std::vector<LockstepSystem::JointState> LockstepSystem::commands()
{
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  std::map<int, JointState> by_fields;
  for (const auto & joint : info_.joints) {
    double values[3] = {nothing, nothing, nothing};
    int fields = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::string interface = joint.name + "/" + FIELDS[k];
      values[k] = has_command(interface) ? get_command<double>(interface) : nothing;
      fields |= std::isfinite(values[k]) ? 1 << k : 0;
    }
    JointState & message = by_fields[fields];
    message.name.push_back(joint.name);
    for (std::size_t k = 0; k < 3; ++k) {
      if (fields & 1 << k) {
        field(message, k).push_back(values[k]);
      }
    }
  }
  if (by_fields.count(0) != 0) {
    if (by_fields.size() == 1) {
      return {};
    }
    for (const std::string & name : by_fields[0].name) {  // the others have a controller: hold
      by_fields[0].position.push_back(hold_[name]);
    }
  }
  std::vector<JointState> messages;
  for (const auto & [fields, message] : by_fields) {
    messages.push_back(message);
  }
  return messages;
}

return_type LockstepSystem::write(const rclcpp::Time &, const rclcpp::Duration &)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  // the first answer may come before the first cycle, which the simulation waits for
  const bool of_this_cycle = read_ == stamp_ || answered_ == 0;
  if (stamp_ == answered_ || !of_this_cycle) {
    return return_type::OK;
  }
  answered_ = stamp_;
  answer_ = commands();
  publish();
  return return_type::OK;
}

void LockstepSystem::publish()
{
  if (answer_.empty()) {
    std_msgs::msg::Header header;
    header.stamp = state_.header.stamp;
    acknowledgement_->publish(header);
  }
  for (JointState & message : answer_) {
    message.header.stamp = state_.header.stamp;
    publisher_->publish(message);
  }
}

}  // namespace ros2_control_lockstep

PLUGINLIB_EXPORT_CLASS(
  ros2_control_lockstep::LockstepSystem, hardware_interface::SystemInterface)
