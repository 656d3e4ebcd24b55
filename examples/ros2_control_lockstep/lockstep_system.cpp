#include "lockstep_system.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <hardware_interface/types/hardware_interface_type_values.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <rcl/time.h>

namespace ros2_control_lockstep
{

using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

namespace
{
const char * const FIELDS[] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_EFFORT};
constexpr double SLICE = 0.05;  // wall time after which read() returns without a state [s]

// Return the array of a message that an interface is about.
std::vector<double> & field(sensor_msgs::msg::JointState & message, std::size_t k)
{
  return k == 0 ? message.position : k == 1 ? message.velocity : message.effort;
}

// Set the clock of nodes with use_sim_time.
void set_clock(rclcpp::Clock & clock, std::int64_t time)
{
  const std::lock_guard<std::mutex> lock(clock.get_clock_mutex());
  if (rcl_set_ros_time_override(clock.get_clock_handle(), time) != RCL_RET_OK) {
    rcl_reset_error();
    throw std::runtime_error("the clock cannot be set: it needs use_sim_time");
  }
}
}  // namespace

std::string LockstepSystem::parameter(
  const std::string & name, const std::string & fallback) const
{
  const auto given = info_.hardware_parameters.find(name);
  return given == info_.hardware_parameters.end() ? fallback : given->second;
}

CallbackReturn LockstepSystem::on_init(
  const hardware_interface::HardwareComponentInterfaceParams & params)
{
  if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) {
    return CallbackReturn::ERROR;
  }
  timeout_ = std::stod(parameter("timeout", "10.0"));
  return CallbackReturn::SUCCESS;
}

CallbackReturn LockstepSystem::on_configure(const rclcpp_lifecycle::State &)
{
  const std::string path = parameter("socket", "");
  if (path.empty()) {
    if (!get_node()) {
      RCLCPP_ERROR(get_logger(), "no node: the controller manager has no executor");
      return CallbackReturn::ERROR;
    }
    subscribe();
    return CallbackReturn::SUCCESS;
  }
  try {
    socket_ = std::make_unique<LockstepSocket>(path, parameter("robot", ""), timeout_);
  } catch (const std::runtime_error & error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn LockstepSystem::on_cleanup(const rclcpp_lifecycle::State &)
{
  wait_set_.reset();
  states_.reset();
  publisher_.reset();
  acknowledgement_.reset();
  socket_.reset();
  return CallbackReturn::SUCCESS;
}

void LockstepSystem::subscribe()
{
  const auto node = get_node();
  // RELIABLE: in lockstep a message that is lost would stop time.
  const rclcpp::QoS qos = rclcpp::QoS(100).reliable();
  publisher_ = node->create_publisher<JointState>(
    parameter("joint_commands_topic", "joint_commands"), qos);
  acknowledgement_ = node->create_publisher<Header>(
    parameter("lockstep_ack_topic", "contact_sim/lockstep_ack"), qos);
  // read() takes the states itself: an executor would look at all that the controller manager
  // has before it passes one on
  rclcpp::SubscriptionOptions options;
  options.callback_group =
    node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false);
  states_ = node->create_subscription<JointState>(
    parameter("joint_states_topic", "joint_states"), qos, [](const JointState &) {}, options);
  wait_set_ = std::make_unique<rclcpp::WaitSet>(
    std::vector<rclcpp::WaitSet::SubscriptionEntry>{{states_}});
}

CallbackReturn LockstepSystem::on_activate(const rclcpp_lifecycle::State &)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  answered_ = 0;
  return CallbackReturn::SUCCESS;
}

return_type LockstepSystem::read(const rclcpp::Time &, const rclcpp::Duration &)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    // one that is here already may come again: the simulation reminds those who do not answer
    while (receive(stamp_ == answered_ ? SLICE : 0.0)) {
      stamp_ = rclcpp::Time(state_.header.stamp).nanoseconds();
      if (stamp_ == answered_) {
        publish();  // the simulation has not heard the answer, or time was set back to this state
      }
    }
    if (stamp_ != answered_) {  // otherwise time stands still, which is no error
      set_clock(*get_clock(), stamp_);
      use_state();
    }
  } catch (const std::runtime_error & error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    return return_type::ERROR;
  }
  return return_type::OK;
}

// Take the next state, wait for it at most `patience` wall seconds; return whether there is one.
bool LockstepSystem::receive(double patience)
{
  if (socket_) {
    if (!socket_->receive(bytes_, patience)) {
      return false;
    }
    joint_states_.deserialize_message(&bytes_, &state_);
    return true;
  }
  const auto time = std::chrono::nanoseconds(std::llround(1e9 * patience));
  if (wait_set_->wait(time).kind() != rclcpp::WaitResultKind::Ready) {
    return false;
  }
  rclcpp::MessageInfo info;
  return states_->take(state_, info);
}

void LockstepSystem::find_joints()
{
  for (const auto & joint : info_.joints) {
    Joint found;
    found.name = joint.name;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::string interface = joint.name + "/" + FIELDS[k];
      if (has_state(interface)) {
        found.states[k] = get_state_interface_handle(interface);
      }
      if (has_command(interface)) {
        found.commands[k] = get_command_interface_handle(interface);
      }
    }
    joints_.push_back(found);
  }
}

void LockstepSystem::use_state()
{
  if (joints_.empty()) {
    find_joints();
  }
  const auto & names = state_.name;
  for (Joint & joint : joints_) {
    if (joint.place >= names.size() || names[joint.place] != joint.name) {
      const auto found = std::find(names.begin(), names.end(), joint.name);
      if (found == names.end()) {
        throw std::runtime_error("no joint " + joint.name + " in the states of the simulation");
      }
      joint.place = static_cast<std::size_t>(found - names.begin());
    }
    for (std::size_t k = 0; k < 3; ++k) {
      if (joint.states[k] && joint.place < field(state_, k).size()) {
        set_state(joint.states[k], field(state_, k)[joint.place], true);
      }
    }
    if (!joint.seen) {
      joint.hold = state_.position[joint.place];
      joint.seen = true;
    }
  }
  read_ = stamp_;
}

// One message for each set of interfaces that joints are commanded by; none where none is.
void LockstepSystem::make_answer()
{
  for (JointState & message : answers_) {
    message.name.clear();
    message.position.clear();
    message.velocity.clear();
    message.effort.clear();
  }
  commanded_ = false;
  for (const Joint & joint : joints_) {
    double values[3];
    std::size_t fields = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      if (joint.commands[k] && get_command(joint.commands[k], values[k], true) &&
        std::isfinite(values[k]))
      {
        fields |= 1u << k;
      }
    }
    commanded_ = commanded_ || fields != 0;
    if (fields == 0) {  // nobody commands it: it holds its first position
      fields = 1;
      values[0] = joint.hold;
    }
    JointState & message = answers_[fields];
    message.name.push_back(joint.name);
    for (std::size_t k = 0; k < 3; ++k) {
      if (fields & 1u << k) {
        field(message, k).push_back(values[k]);
      }
    }
  }
}

return_type LockstepSystem::write(const rclcpp::Time &, const rclcpp::Duration &)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stamp_ == answered_ || stamp_ != read_) {
    return return_type::OK;  // there is nothing to answer, or it came after this cycle's read
  }
  answered_ = stamp_;
  make_answer();
  try {
    publish();
  } catch (const std::runtime_error & error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    return return_type::ERROR;
  }
  return return_type::OK;
}

void LockstepSystem::publish()
{
  if (!commanded_) {
    Header header;
    header.stamp = state_.header.stamp;
    if (socket_) {
      headers_.serialize_message(&header, &bytes_);
      socket_->send_acknowledgement(bytes_);
    } else {
      acknowledgement_->publish(header);
    }
    return;
  }
  for (JointState & message : answers_) {
    if (message.name.empty()) {
      continue;
    }
    message.header.stamp = state_.header.stamp;
    if (socket_) {
      joint_states_.serialize_message(&message, &bytes_);
      socket_->send_command(bytes_);
    } else {
      publisher_->publish(message);
    }
  }
}

}  // namespace ros2_control_lockstep

PLUGINLIB_EXPORT_CLASS(
  ros2_control_lockstep::LockstepSystem, hardware_interface::SystemInterface)
