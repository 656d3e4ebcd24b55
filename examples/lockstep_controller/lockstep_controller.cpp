// A controller for lockstep: every joint swings about its first position and is damped.
// It answers each state with one command that carries the stamp of the state.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>

using sensor_msgs::msg::JointState;

class LockstepController : public rclcpp::Node
{
public:
  LockstepController()
  : Node("lockstep_controller")
  {
    // RELIABLE: in lockstep a message that is lost would stop time.
    const rclcpp::QoS qos = rclcpp::QoS(10).reliable();
    publisher_ = create_publisher<JointState>("joint_commands", qos);
    subscription_ = create_subscription<JointState>(
      "joint_states", qos, std::bind(&LockstepController::answer, this, std::placeholders::_1));
  }

private:
  void answer(const JointState & state)
  {
    const rclcpp::Time now(state.header.stamp);  // simulated time; the wall clock plays no part
    if (pose_.empty()) {
      pose_ = state.position;
      start_ = now.nanoseconds();
    }
    const double t = 1e-9 * static_cast<double>(now.nanoseconds() - start_);
    const double swing = 0.1 * std::sin(18.0 * t);  // [rad]
    JointState command;
    command.header.stamp = state.header.stamp;
    command.name = state.name;
    for (std::size_t k = 0; k < state.name.size(); ++k) {
      command.position.push_back(pose_[k] + swing);
      command.effort.push_back(-0.5 * state.velocity[k]);
    }
    publisher_->publish(command);
  }

  rclcpp::Publisher<JointState>::SharedPtr publisher_;
  rclcpp::Subscription<JointState>::SharedPtr subscription_;
  std::vector<double> pose_;
  std::int64_t start_ = 0;
};

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  rclcpp::spin(std::make_shared<LockstepController>());
  rclcpp::shutdown();
}
