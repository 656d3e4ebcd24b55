#include "lockstep_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace ros2_control_lockstep
{

namespace
{
const char GREETING[] = "contact_sim lockstep 1\n";
constexpr char COMMAND = 'c', ACKNOWLEDGEMENT = 'a', REFUSAL = '!';
constexpr std::size_t LARGEST = 1 << 16;         // bytes of a state
constexpr std::chrono::milliseconds RETRY{20};   // between two attempts to connect

[[noreturn]] void fail(const std::string & what)
{
  throw std::runtime_error("lockstep socket: " + what);
}
}  // namespace

LockstepSocket::LockstepSocket(
  const std::string & path, const std::string & robot, double timeout)
: socket_(-1)
{
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    fail("the path " + path + " is too long");
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
  while (true) {
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(socket_, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0) {
      break;
    }
    const std::string reason = std::strerror(errno);
    ::close(socket_);
    if (std::chrono::steady_clock::now() > end) {
      fail("no simulation listens at " + path + " (lockstep.socket): " + reason);
    }
    std::this_thread::sleep_for(RETRY);
  }
  const std::string greeting = GREETING + robot;
  if (::send(socket_, greeting.data(), greeting.size(), MSG_NOSIGNAL) < 0) {
    const std::string reason = std::strerror(errno);
    ::close(socket_);
    fail(reason);
  }
}

LockstepSocket::~LockstepSocket()
{
  ::close(socket_);
}

bool LockstepSocket::receive(rclcpp::SerializedMessage & state, double patience)
{
  pollfd news{socket_, POLLIN, 0};
  if (::poll(&news, 1, static_cast<int>(1e3 * patience)) <= 0) {
    return false;  // nothing has come, or a signal
  }
  state.reserve(LARGEST);
  rcl_serialized_message_t & bytes = state.get_rcl_serialized_message();
  const ssize_t length = ::recv(socket_, bytes.buffer, LARGEST, 0);
  if (length <= 0) {
    fail(length == 0 ? "the simulation has ended" : std::strerror(errno));
  }
  bytes.buffer_length = static_cast<std::size_t>(length);
  if (bytes.buffer[0] == REFUSAL) {
    fail(std::string(bytes.buffer + 1, bytes.buffer + length));
  }
  return true;
}

void LockstepSocket::send_command(const rclcpp::SerializedMessage & joint_state)
{
  send(COMMAND, joint_state);
}

void LockstepSocket::send_acknowledgement(const rclcpp::SerializedMessage & header)
{
  send(ACKNOWLEDGEMENT, header);
}

void LockstepSocket::send(char kind, const rclcpp::SerializedMessage & message)
{
  const rcl_serialized_message_t & bytes = message.get_rcl_serialized_message();
  iovec parts[2] = {{&kind, 1}, {bytes.buffer, bytes.buffer_length}};
  msghdr packet{};
  packet.msg_iov = parts;
  packet.msg_iovlen = 2;
  if (::sendmsg(socket_, &packet, MSG_NOSIGNAL) < 0) {
    fail(std::strerror(errno));
  }
}

}  // namespace ros2_control_lockstep
