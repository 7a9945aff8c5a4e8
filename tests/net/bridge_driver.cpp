// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib-net with a driver for tests: the interfaces of all nodes of a fabric are on one Ethernet.
// Each node has a datagram socket in the folder net/ of the runtime directory and sends each frame
// to all others. In the report: what it has passed on.
#include "softib_net/net_main.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace {

using ib::Status;
using ib::os::net::NodeEvent;
using ib::os::net::NodeInterface;
using ib::os::net::NodeNetwork;
using ib::os::net::NodePlace;

class BridgeDriver final : public ib::os::net::NodeDriver {
 public:
  explicit BridgeDriver(const NodePlace& place)
      : folder_(place.runtime_dir + "/net"), own_(folder_ + "/" + place.node + ".bridge") {}
  ~BridgeDriver() override { ::unlink(own_.c_str()); }

  Status run(NodeNetwork& network, std::string& reason) override {
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ::unlink(own_.c_str());
    const sockaddr_un own = address_of(own_);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
      reason = "no socket for the bridge";
      return Status::IoError;
    }
    const auto number = std::hash<std::string>{}(network.place().node);
    ib::os::net::InterfaceSpec spec;
    spec.mtu = {65'520};
    spec.port_guid = 0x0200'0000'0000'0000 | number >> 8;
    for (std::size_t i = 1; i < spec.mac.size(); ++i)
      spec.mac[i] = static_cast<std::uint8_t>(number >> (8 * i));
    spec.mac[0] = 2;
    const auto ib0 = network.add(spec, reason);
    if (!ib0) return ib0.error();
    spec.pkey = 0x8001;
    const auto child = network.add(spec, reason);
    if (!child) return child.error();
    if ((*ib0)->set_carrier(true) != Status::Ok) return Status::IoError;
    network.report_ready();
    network.log("the bridge is there");
    return pass_frames(network, **ib0);
  }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }

  Status pass_frames(NodeNetwork& network, const NodeInterface& ib0) {
    std::array<pollfd, 3> watched{
        {{network.events(), POLLIN, 0}, {ib0.descriptor(), POLLIN, 0}, {socket_, POLLIN, 0}}};
    for (;;) {
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[0].revents != 0) {
        const NodeEvent event = network.take_event();
        if (event == NodeEvent::Stop) return Status::Ok;
        if (event == NodeEvent::Report)
          network.send_report("{\"frames\": " + std::to_string(frames_) + "}");
      }
      if (watched[1].revents != 0) send_to_all(ib0.descriptor());
      if (watched[2].revents != 0) {
        const ssize_t got = ::read(socket_, frame_.data(), frame_.size());
        if (got > 0) (void)!::write(ib0.descriptor(), frame_.data(), static_cast<std::size_t>(got));
      }
    }
  }

  void send_to_all(int tap) {
    const ssize_t got = ::read(tap, frame_.data(), frame_.size());
    if (got <= 0) return;
    ++frames_;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      if (entry.path().extension() != ".bridge" || entry.path() == own_) continue;
      const sockaddr_un to = address_of(entry.path());
      (void)::sendto(socket_, frame_.data(), static_cast<std::size_t>(got), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
  }

  std::string folder_;
  std::string own_;
  int socket_ = -1;
  std::size_t frames_ = 0;
  std::vector<std::byte> frame_ = std::vector<std::byte>(ib::os::net::kMaxFrameBytes);
};

}  // namespace

int main(int argc, char** argv) {
  return ib::softib_net::net_main(
      argc, argv, [](const NodePlace& place) { return std::make_unique<BridgeDriver>(place); });
}
