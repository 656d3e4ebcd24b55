// A controller manager whose cycles begin at the instants of contact_sim in lockstep.
//
// ros2_control_node sleeps for a period after the time at which a cycle began, and that may lie
// between two instants. Here a cycle begins when the hardware has the state of an instant, where
// the simulation stands still until it is answered. The hardware sets the clock of the manager to
// that instant, and this node those of the controllers, so that read, update and write, which look
// at the clock, all see the same time, however long they take. /clock has to be remapped, so that
// nothing else sets these clocks.
//
// At its first instant time stands still until the controllers of the parameter
// `wait_for_controllers` are active: so they begin at the same state in every run.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <controller_manager/controller_manager.hpp>
#include <lifecycle_msgs/msg/state.hpp>
#include <rcl/time.h>
#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>

namespace
{
constexpr std::chrono::milliseconds WAIT{5};   // between two cycles before the start
constexpr std::chrono::milliseconds LOOK{50};  // between two looks at who is loaded later

using controller_manager::ControllerManager;

// Return whether all controllers of these names are active.
bool active(
  const ControllerManager & manager, const std::vector<std::string> & names)
{
  const auto loaded = manager.get_loaded_controllers();
  return std::all_of(
    names.begin(), names.end(), [&loaded](const std::string & name) {
      return std::any_of(
        loaded.begin(), loaded.end(), [&name](const auto & controller) {
          return controller.info.name == name &&
                 controller.c->get_lifecycle_id() ==
                 lifecycle_msgs::msg::State::PRIMARY_STATE_ACTIVE;
        });
    });
}

// The clocks of the controllers, which follow that of the manager.
class Clocks
{
public:
  // Look who is loaded; not in the cycle, because who changes controllers holds their lock, and
  // waits for a cycle.
  void refresh(const ControllerManager & manager)
  {
    std::vector<rclcpp::Clock::SharedPtr> found;
    for (const auto & controller : manager.get_loaded_controllers()) {
      found.push_back(controller.c->get_node()->get_clock());
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    clocks_.swap(found);
  }

  void set(std::int64_t time)
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto & clock : clocks_) {
      const std::lock_guard<std::mutex> clock_lock(clock->get_clock_mutex());
      if (rcl_set_ros_time_override(clock->get_clock_handle(), time) != RCL_RET_OK) {
        rcl_reset_error();  // a controller without use_sim_time has its own time
      }
    }
  }

private:
  std::mutex mutex_;
  std::vector<rclcpp::Clock::SharedPtr> clocks_;
};

// Cycle at the instants of which the hardware has the state.
void cycle(
  ControllerManager & manager, const rclcpp::Duration & step, const std::atomic<bool> & waiting,
  Clocks & clocks)
{
  rclcpp::Time last = manager.now();
  while (rclcpp::ok()) {
    const bool unanswered = waiting;  // before update: one with all controllers is to be answered
    manager.read(last, step);         // waits for the state, and sets the clock
    const rclcpp::Time now = manager.now();
    if (now.nanoseconds() == 0 || now == last) {  // no hardware yet, or time stands still
      std::this_thread::sleep_for(WAIT);
      continue;
    }
    clocks.set(now.nanoseconds());
    manager.update(now, step);
    if (unanswered) {  // time stands still
      std::this_thread::sleep_for(WAIT);
      continue;
    }
    manager.write(now, step);
    last = now;
  }
}
}  // namespace

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  const auto executor = std::make_shared<rclcpp::executors::MultiThreadedExecutor>();
  rclcpp::NodeOptions options = controller_manager::get_cm_node_options();
  options.arguments(std::vector<std::string>(argv + 1, argv + argc));
  const auto manager =
    std::make_shared<ControllerManager>(executor, "controller_manager", "", options);
  if (!manager->get_parameter_or("use_sim_time", false)) {
    RCLCPP_FATAL(manager->get_logger(), "use_sim_time is false: controllers need simulated time");
    return 1;
  }
  const auto awaited =
    manager->get_parameter_or("wait_for_controllers", std::vector<std::string>{});
  const auto description = manager->get_parameter_or("robot_description", std::string{});
  if (!description.empty()) {  // else from the topic robot_description
    std_msgs::msg::String message;
    message.data = description;
    manager->robot_description_callback(message);
  }
  executor->add_node(manager);
  std::thread callbacks([&executor] {executor->spin();});

  Clocks clocks;
  std::atomic<bool> waiting{!awaited.empty()};
  std::thread watch([&] {  // not in the cycle: who changes controllers holds their lock
    while (rclcpp::ok()) {
      waiting = waiting && !active(*manager, awaited);
      clocks.refresh(*manager);
      std::this_thread::sleep_for(waiting ? WAIT : LOOK);
    }
  });
  const auto step =
    rclcpp::Duration::from_nanoseconds(std::llround(1e9 / manager->get_update_rate()));
  cycle(*manager, step, waiting, clocks);
  watch.join();
  callbacks.join();
  rclcpp::shutdown();
}
