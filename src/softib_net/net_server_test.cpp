// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib-net as a whole, in a process of its own, with a driver that makes one interface. This
// process is its client.
#include "linux/net/in_namespace_test.h"
#include "linux/net/netlink.h"
#include "linux/received_descriptors.h"
#include "linux/server/server_message_io.h"
#include "setup/net/net_messages.h"
#include "softib_net/host_network.h"
#include "softib_net/net_main.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <optional>

namespace ib::softib_net {
namespace {

using os::net::NodeEvent;
using softib::NetCode;
using softib::PlanKind;
using ::testing::HasSubstr;

class OneInterface final : public os::net::NodeDriver {
 public:
  Status run(os::net::NodeNetwork& network, std::string& reason) override {
    if (network.place().connected_mode != (network.place().node == "connected")) {
      reason = "another mode";
      return Status::InvalidParameter;
    }
    if (network.place().node == "broken") {
      reason = "it is broken";
      return Status::IoError;
    }
    auto ib0 = network.add({.mac = {2, 0, 0, 0, 0, 1}, .port_guid = 0x0200000000000007}, reason);
    if (!ib0) return ib0.error();
    if ((*ib0)->set_carrier(true) != Status::Ok || !(*ib0)->has_carrier()) return Status::IoError;
    network.report_ready();
    for (;;) {
      pollfd waiting{network.events(), POLLIN, 0};
      if (::poll(&waiting, 1, -1) < 0) continue;
      switch (network.take_event()) {
        case NodeEvent::None: break;
        case NodeEvent::Stop: return Status::Ok;
        case NodeEvent::Report: network.send_report(R"({"is": "here"})"); break;
      }
    }
  }
};

struct Answer {
  Status status = Status::Disconnected;
  std::string text;
  std::array<platform::NativeHandle, 2> files;
};

// A connection that says one thing.
class Caller {
 public:
  explicit Caller(const std::string& path)
      : socket_(os::own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(socket_.get(), generic, sizeof address) != 0) socket_.reset();
  }
  Answer say(std::span<const std::byte> bytes, platform::NativeHandle file = {}) {
    std::array<platform::NativeHandle, 2> files;
    files[0] = std::move(file);
    if (os::send_message(socket_.get(), bytes, files) != os::Transfer::Done) return {};
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 20'000) != 1) return {Status::Timeout, {}, {}};
    std::array<std::byte, 8192> buffer{};
    os::ServerMessage message;
    if (os::receive_message(socket_.get(), buffer, message) != os::Transfer::Done) return {};
    softib::NetAnswer head;
    if (message.bytes.size() < sizeof head) return {Status::Malformed, {}, {}};
    std::memcpy(&head, message.bytes.data(), sizeof head);
    const auto rest = message.bytes.subspan(sizeof head);
    return {Status{head.status},
            std::string(reinterpret_cast<const char*>(rest.data()), rest.size()),
            std::move(message.handles)};
  }
  Answer say(NetCode code, const std::string& node, platform::NativeHandle file = {}) {
    return say(request_of(code, node), std::move(file));
  }
  Answer join(const std::string& node, softib::IpoibMode mode, bool needs_mode) {
    softib::ParsedNetRequest request = request_of(NetCode::Join, node);
    request.mode = mode;
    request.needs_mode = needs_mode;
    return say(request);
  }

 private:
  Answer say(const softib::ParsedNetRequest& request, platform::NativeHandle file = {}) {
    return say(softib::write_net_request(request), std::move(file));
  }
  static softib::ParsedNetRequest request_of(NetCode code, const std::string& node) {
    return {code,
            node,
            "/nowhere.sock",
            {{verbs::ipv4_gid(0x0a010001), 24, PlanKind::Address, 0},
             {verbs::ipv4_gid(0xc0000200), 24, PlanKind::OnLink, 0},
             {verbs::ipv4_gid(0x7f976000), 19, PlanKind::Unreachable, 0}}};
  }

  platform::NativeHandle socket_;
};

std::string file_text(const platform::NativeHandle& file) {
  std::array<char, 4096> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

class NetServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    IB_NEED_NETWORK_NAMESPACES();
    std::string name = ::testing::TempDir() + "/softib-net-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    server_ = ::fork();
    if (server_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      const std::string ready = std::to_string(ends[1]);
      std::array<const char*, 7> words{"softib-net",    "--fabric",   "t",          "--runtime-dir",
                                       folder_.c_str(), "--ready-fd", ready.c_str()};
      ::_exit(net_main(static_cast<int>(words.size()), const_cast<char**>(words.data()),
                       [](const os::net::NodePlace&) { return std::make_unique<OneInterface>(); }));
    }
    ::close(ends[1]);
    std::array<char, 512> line{};
    const ssize_t got = ::read(ends[0], line.data(), line.size());
    ::close(ends[0]);
    ASSERT_GT(got, 3) << "softib-net did not start";
    ASSERT_EQ(std::string(line.data(), 3), "ok ");
  }
  void TearDown() override {
    if (server_ > 0) {
      ::kill(server_, SIGKILL);
      ::waitpid(server_, nullptr, 0);
    }
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/net/t.sock"; }
  // Waits for its end by itself.
  int server_exit() {
    int status = 0;
    ::waitpid(server_, &status, 0);
    server_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_t driver_of(const std::string& node) {
    const Answer list = Caller(path()).say(NetCode::Report, "");
    const std::string text = file_text(list.files[0]);
    const std::size_t at = text.find("\"driver_pid\":", text.find("\"" + node + "\""));
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + 13));
  }

  std::string folder_;
  pid_t server_ = 0;
};

// As a program would: in the namespaces of an answer.
std::string inside(const Answer& answer, const std::function<std::string()>& body) {
  return os::net::in_child_process([&]() -> std::string {
    if (const auto refusal = os::net::join_user_namespace(answer.files[0].get()))
      return explain(refusal);
    if (const auto refusal = os::net::join_network_namespace(answer.files[1].get()))
      return explain(refusal);
    return body();
  });
}

std::string state_of_ib0() {
  return os::net::state_of_interface("ib0");
}

TEST_F(NetServerTest, ProgramsOfANodeShareItsNetworkWhichEndsWithTheLast) {
  std::optional<Caller> first(std::in_place, path());
  std::optional<Caller> second(std::in_place, path());
  Answer one = first->say(NetCode::Join, "node0");
  Answer two = second->say(NetCode::Join, "node0");
  ASSERT_EQ(one.status, Status::Ok) << one.text;
  ASSERT_EQ(two.status, Status::Ok) << two.text;
  EXPECT_EQ(os::net::namespace_id(one.files[1].get()), os::net::namespace_id(two.files[1].get()));
  EXPECT_EQ(inside(one, state_of_ib0), "carrier");
  first.reset();
  EXPECT_EQ(Caller(path()).say(NetCode::Report, "node0").status, Status::Ok);
  second.reset();
  EXPECT_EQ(server_exit(), 0);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(NetServerTest, TheInterfaceHasTheAddressesAndRoutesOfThePlan) {
  Caller caller(path());
  const Answer answer = caller.say(NetCode::Join, "node0");
  ASSERT_EQ(answer.status, Status::Ok) << answer.text;
  EXPECT_EQ(inside(answer,
                   []() -> std::string {
                     const auto reaches = [](std::uint32_t ip) {
                       const auto socket =
                           os::own_descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
                       sockaddr_in to{};
                       to.sin_family = AF_INET;
                       to.sin_port = 1;
                       to.sin_addr.s_addr = __builtin_bswap32(ip);
                       return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to),
                                        sizeof to) == 0;
                     };
                     if (!reaches(0x0a010001)) return "its own address";
                     if (!reaches(0x0a010002)) return "its network";
                     if (!reaches(0xc0000205)) return "the route";
                     if (reaches(0x7f976001)) return "a loopback address of the fabric";
                     return reaches(0x08080808) ? "everything" : "";
                   }),
            "");
}

TEST_F(NetServerTest, TwoNodesHaveTwoNetworks) {
  Caller first(path());
  Caller second(path());
  const Answer one = first.say(NetCode::Join, "node0");
  const Answer two = second.say(NetCode::Join, "node1");
  EXPECT_FALSE(os::net::namespace_id(one.files[1].get()) ==
               os::net::namespace_id(two.files[1].get()));
  EXPECT_EQ(os::net::namespace_id(one.files[0].get()), os::net::namespace_id(two.files[0].get()));
}

TEST_F(NetServerTest, AKilledDriverLeavesNoCarrierAndTheNextProgramHasAnother) {
  Caller first(path());
  const Answer one = first.say(NetCode::Join, "node0");
  ASSERT_EQ(one.status, Status::Ok) << one.text;
  const pid_t driver = driver_of("node0");
  ASSERT_GT(driver, 0);
  ::kill(driver, SIGKILL);
  while (driver_of("node0") != 0) continue;
  EXPECT_EQ(inside(one, state_of_ib0), "no carrier");
  EXPECT_THAT(Caller(path()).say(NetCode::Report, "node0").text, HasSubstr("killed by signal 9"));
  Caller second(path());
  const Answer two = second.say(NetCode::Join, "node0");
  ASSERT_EQ(two.status, Status::Ok) << two.text;
  EXPECT_EQ(os::net::namespace_id(one.files[1].get()), os::net::namespace_id(two.files[1].get()));
  EXPECT_EQ(inside(one, state_of_ib0), "carrier");
}

TEST_F(NetServerTest, TheModeIsThatOfTheFirstProgram) {
  using softib::IpoibMode;
  std::optional<Caller> first(std::in_place, path());
  const Answer one = first->join("connected", IpoibMode::Connected, true);
  ASSERT_EQ(one.status, Status::Ok) << one.text;
  EXPECT_EQ(Caller(path()).join("connected", IpoibMode::Connected, true).status, Status::Ok);
  EXPECT_EQ(Caller(path()).join("connected", IpoibMode::Datagram, false).status, Status::Ok);
  const Answer other = Caller(path()).join("connected", IpoibMode::Datagram, true);
  EXPECT_EQ(other.status, Status::DeviceBusy);
  EXPECT_THAT(other.text, HasSubstr("is there already, in connected mode"));
  EXPECT_THAT(other.text, HasSubstr("before --net=datagram"));
  // Also for a driver that follows.
  ::kill(driver_of("connected"), SIGKILL);
  while (driver_of("connected") != 0) continue;
  EXPECT_EQ(Caller(path()).join("connected", IpoibMode::Datagram, false).status, Status::Ok);
}

TEST_F(NetServerTest, ADriverThatEndsSaysWhy) {
  const Answer answer = Caller(path()).say(NetCode::Join, "broken");
  EXPECT_EQ(answer.status, Status::IoError);
  EXPECT_EQ(answer.text, "it is broken");
  EXPECT_EQ(server_exit(), 0);
}

TEST_F(NetServerTest, AProcessInTheNamespaceKeepsItWithoutAConnection) {
  std::optional<Caller> caller(std::in_place, path());
  const Answer answer = caller->say(NetCode::Join, "node0");
  ASSERT_EQ(answer.status, Status::Ok) << answer.text;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)os::net::join_user_namespace(answer.files[0].get());
    (void)os::net::join_network_namespace(answer.files[1].get());
    (void)!::write(ends[1], "x", 1);
    ::close_range(0, ~0u, 0);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  caller.reset();
  EXPECT_EQ(Caller(path()).say(NetCode::Report, "node0").status, Status::Ok);
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  EXPECT_EQ(server_exit(), 0);
}

TEST_F(NetServerTest, RequestsOfAnyContentAreAnswered) {
  const std::array<std::byte, 3> nonsense{};
  EXPECT_EQ(Caller(path()).say(nonsense).status, Status::Malformed);
  EXPECT_EQ(Caller(path()).say(NetCode::Detach, "node0").status, Status::NotFound);
  EXPECT_EQ(Caller(path()).say(NetCode::Report, "node0").status, Status::NotFound);
  EXPECT_EQ(Caller(path()).say(NetCode::Attach, "node0").status, Status::InvalidParameter);
  Caller caller(path());
  const Answer answer = caller.say(NetCode::Join, "node0");
  EXPECT_EQ(Caller(path())
                .say(NetCode::Attach, "node0", os::own_descriptor(::dup(answer.files[1].get())))
                .status,
            Status::DeviceBusy);
}

TEST_F(NetServerTest, AnAttachedNodeStaysInTheNamespaceOfOthersUntilItIsDetached) {
  if (!os::net::has_network_rights()) GTEST_SKIP() << "needs CAP_SYS_ADMIN and CAP_NET_ADMIN";
  const std::string flaw = os::net::in_network_namespace([&]() -> std::string {
    if (Caller(path()).say(NetCode::Attach, "node0", os::net::own_network_namespace()).status !=
        Status::Ok)
      return "attach";
    if (state_of_ib0() != "carrier") return state_of_ib0();
    if (Caller(path()).say(NetCode::Detach, "node0").status != Status::Ok) return "detach";
    return state_of_ib0();
  });
  EXPECT_EQ(flaw, "absent");
  EXPECT_EQ(server_exit(), 0);
}

TEST_F(NetServerTest, EndsAllNetworksWhenItIsTerminated) {
  Caller caller(path());
  const Answer answer = caller.say(NetCode::Join, "node0");
  ASSERT_EQ(answer.status, Status::Ok) << answer.text;
  const pid_t driver = driver_of("node0");
  ::kill(server_, SIGTERM);
  EXPECT_EQ(server_exit(), 0);
  EXPECT_NE(::kill(driver, 0), 0);
  EXPECT_EQ(inside(answer, state_of_ib0), "no carrier");
}

TEST(HostNetwork, InterfacesAreNamedAfterPortsAndPartitions) {
  EXPECT_EQ(interface_name(0, 0), "ib0");
  EXPECT_EQ(interface_name(3, 0x8001), "ib3.8001");
  EXPECT_EQ(interface_name(0, 0x0001), "ib0.0001");
}

TEST(HostNetwork, TheLinkLocalAddressFollowsFromTheGuidOfThePort) {
  EXPECT_EQ(text_of(link_local_address(0x0002c90300a0b0c1)), "fe80::202:c903:a0:b0c1/64");
}

}  // namespace
}  // namespace ib::softib_net
