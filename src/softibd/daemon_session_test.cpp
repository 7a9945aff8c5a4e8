// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sessions over a real socket pair, with drivers made for the occasion.
#include "softibd/daemon_session.h"

#include "io/irp_queue.h"
#include "io/object_namespace.h"
#include "linux/process/client_handle.h"
#include "linux/server/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::Code;
using Trail = std::vector<std::string>;

struct Reply {
  std::uint64_t tag = 0;
  Status status = Status::Pending;
  std::uint64_t information = 0;
  std::string body;
  std::size_t handles = 0;
};

// Drivers: the root answers Attach, parks WaitEvent and gives back descriptors; the HCA notes
// Create and Close, and holds QueryCa until release().
class TestDevices {
 public:
  explicit TestDevices(Trail& trail) : trail_(trail) {
    root_.set_extension(this);
    hca_.set_extension(this);
    root_driver_.on(io::Major::DeviceControl) = root_control;
    root_driver_.on(io::Major::Create) = note;
    root_driver_.on(io::Major::Close) = note;
    hca_driver_.on(io::Major::DeviceControl) = hca_control;
    hca_driver_.on(io::Major::Create) = note;
    hca_driver_.on(io::Major::Close) = note;
    EXPECT_EQ(names_.add_directory("node0", "\\Device"), Status::Ok);
    EXPECT_EQ(names_.add_device("node0", "\\Device\\ibal", hca_), Status::Ok);
  }

  io::DeviceObject& root() { return root_; }
  io::ObjectNamespace& names() { return names_; }
  void release() {
    while (!held.empty()) {
      io::IrpRef irp = std::move(held.front());
      held.pop_front();
      std::move(irp).complete(Status::Ok, 5);
    }
  }

  io::IrpQueue waiting;
  std::deque<io::IrpRef> held;
  bool hold_create = false;
  bool hold_close = false;
  bool fail_close = false;

 private:
  static void root_control(io::DeviceObject& device, io::IrpRef irp) {
    auto& self = device.extension<TestDevices>();
    const auto code = static_cast<Code>(irp->code);
    if (code == Code::WaitEvent) return self.waiting.park(std::move(irp));
    if (code == Code::Attach) irp->file->client().node = "node0";
    if (code == Code::CreateChannel) irp->out_handles = std::move(irp->in_handles);
    std::move(irp).complete(Status::Ok);
  }
  static void hca_control(io::DeviceObject& device, io::IrpRef irp) {
    device.extension<TestDevices>().held.push_back(std::move(irp));
  }
  static void note(io::DeviceObject& device, io::IrpRef irp) {
    auto& self = device.extension<TestDevices>();
    const bool create = irp->major == io::Major::Create;
    self.trail_.push_back((create ? "create " : "close ") + std::to_string(irp->file->number()));
    if (!create && self.fail_close) return std::move(irp).fail(Status::IoError, "cannot close");
    if (create ? self.hold_create : self.hold_close) return self.held.push_back(std::move(irp));
    std::move(irp).complete(Status::Ok);
  }

  Trail& trail_;
  io::DriverObject root_driver_{"root"};
  io::DriverObject hca_driver_{"soft_hca"};
  io::DeviceObject root_{root_driver_, "root", io::DeviceKind::Functional};
  io::DeviceObject hca_{hca_driver_, "softib0", io::DeviceKind::Functional};
  io::ObjectNamespace names_;
};

// A session, the host that it has, and the other end of its connection.
class World : public SessionHost {
 public:
  World() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    client = os::own_descriptor(ends[0]);
    session = std::make_unique<DaemonSession>(
        *this,
        std::make_unique<os::ServerConnection>(
            loop, os::own_descriptor(ends[1]),
            std::make_shared<std::vector<std::byte>>(control::kMaxMessage)),
        1);
    session->start();
  }
  ~World() override {
    client.reset();
    run();
    if (session != nullptr && !session->is_over()) devices.release();
    run();
    EXPECT_EQ(session, nullptr);
  }

  io::DeviceObject& root_device() override { return devices.root(); }
  Result<io::DeviceObject*> resolve(const std::string& node, const std::string& path,
                                    std::string& reason) override {
    return devices.names().open(node, path, reason);
  }
  Result<os::NativeHandle> make_status(const control::StatusIn*, std::string& reason) override {
    if (devices.hold_create) {
      reason = "no memory";
      return Status::InsufficientResources;
    }
    return os::own_descriptor(::dup(0));
  }
  void disconnect(io::FileObject&) override { trail.push_back("disconnect"); }
  std::string needed_by() const override { return others; }
  void keep(bool on) override { trail.push_back(on ? "keep" : "do not keep"); }
  void shut_down(const std::string&) override { trail.push_back("shut down"); }
  void on_attached() override { trail.push_back("attached"); }
  void on_over(DaemonSession&) override {
    trail.push_back("over");
    loop.post([this] { session.reset(); });
  }

  // Runs the loop until it is idle.
  void run() {
    // A turn takes one message of a connection.
    for (std::size_t i = 0; i < 2 * DaemonSession::kMaxPending; ++i) {
      loop.post([this] { loop.stop(); });
      loop.run();
    }
  }
  void send_raw(const void* data, std::size_t size) {
    EXPECT_EQ(::send(client.get(), data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  template <class In>
  void send(Code code, std::uint64_t tag, std::uint32_t file, const In& in) {
    std::array<std::byte, sizeof(control::RequestHeader) + sizeof(In)> message{};
    const control::RequestHeader header{message.size(), static_cast<std::uint32_t>(code), tag, file,
                                        0};
    std::memcpy(message.data(), &header, sizeof(header));
    std::memcpy(message.data() + sizeof(header), &in, sizeof(In));
    send_raw(message.data(), message.size());
  }
  void send(Code code, std::uint64_t tag, std::uint32_t file = 0) {
    const control::RequestHeader header{sizeof(header), static_cast<std::uint32_t>(code), tag, file,
                                        0};
    send_raw(&header, sizeof(header));
  }
  std::optional<Reply> receive() {
    run();
    std::array<char, control::kMaxMessage> buffer;
    alignas(cmsghdr) std::array<char, 256> ancillary;
    iovec data{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    const ssize_t size = ::recvmsg(client.get(), &message, MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof(control::ReplyHeader))) return std::nullopt;
    control::ReplyHeader header;
    std::memcpy(&header, buffer.data(), sizeof(header));
    EXPECT_EQ(header.length, static_cast<std::size_t>(size));
    Reply reply{header.tag, static_cast<Status>(header.status), header.information,
                std::string(buffer.data() + sizeof(header), header.length - sizeof(header)), 0};
    if (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr) {
      reply.handles = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < reply.handles; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        ::close(descriptor);
      }
    }
    return reply;
  }
  bool hung_up() {
    run();
    char c = 0;
    return ::recv(client.get(), &c, 1, MSG_DONTWAIT) == 0;
  }
  void attach() {
    send(Code::Attach, 100);
    EXPECT_EQ(receive().value().status, Status::Ok);
  }
  std::uint32_t open(const char* path = "\\Device\\ibal") {
    control::OpenIn in;
    std::strncpy(in.path.data(), path, in.path.size() - 1);
    send(Code::Open, 101, 0, in);
    const Reply reply = receive().value();
    EXPECT_EQ(reply.status, Status::Ok) << reply.body;
    return static_cast<std::uint32_t>(reply.information);
  }

  os::EventLoop loop;
  os::NativeHandle client;
  std::unique_ptr<DaemonSession> session;
  Trail trail;
  TestDevices devices{trail};
  std::string others;  // programs that need the fabric
};

TEST(DaemonSession, AnswersCarryTheTagOfTheRequest) {
  World w;
  w.send(Code::Ping, 0xffffffff00000001);
  w.send(Code::Ping, 2);
  EXPECT_EQ(w.receive().value().tag, 0xffffffff00000001);
  EXPECT_EQ(w.receive().value().tag, 2u);
}

TEST(DaemonSession, OpensAndClosesFiles) {
  World w;
  w.attach();
  const std::uint32_t file = w.open();
  EXPECT_NE(file, 0u);
  EXPECT_NE(w.open(), file);
  w.send(Code::QueryCa, 7, file);
  EXPECT_FALSE(w.receive());
  w.devices.release();
  EXPECT_EQ(w.receive().value().information, 5u);
  w.send(Code::Close, 8, 0, control::CloseIn{file, 0});
  EXPECT_EQ(w.receive().value().status, Status::Ok);
  w.send(Code::QueryCa, 9, file);
  const Reply reply = w.receive().value();
  EXPECT_EQ(reply.status, Status::NotFound);
  EXPECT_EQ(reply.body, "file 1 is not open");
}

TEST(DaemonSession, CloseWaitsForTheRequestsOfTheFile) {
  World w;
  w.attach();
  const std::uint32_t file = w.open();
  w.send(Code::QueryCa, 7, file);
  w.send(Code::Close, 8, 0, control::CloseIn{file, 0});
  w.send(Code::QueryCa, 9, file);
  w.send(Code::Close, 10, 0, control::CloseIn{file, 0});
  EXPECT_EQ(w.receive().value().tag, 9u);  // not open any more
  EXPECT_EQ(w.receive().value().tag, 10u);
  EXPECT_EQ(w.trail.back(), "create 1");
  w.devices.release();
  EXPECT_EQ(w.receive().value().tag, 7u);
  EXPECT_EQ(w.receive().value().tag, 8u);
  EXPECT_EQ(w.trail.back(), "close 1");
}

// A file cannot be half closed.
TEST(DaemonSession, AFileIsClosedWhateverItsDriverSays) {
  World w;
  w.attach();
  const std::uint32_t file = w.open();
  w.devices.fail_close = true;
  w.send(Code::Close, 1, 0, control::CloseIn{file, 0});
  const Reply reply = w.receive().value();
  EXPECT_EQ(reply.status, Status::Ok);
  EXPECT_EQ(reply.body, "");
  w.send(Code::QueryCa, 2, file);
  EXPECT_EQ(w.receive().value().status, Status::NotFound);
}

TEST(DaemonSession, OpenSaysWhatIsWrong) {
  World w;
  control::OpenIn in;
  std::strcpy(in.path.data(), "\\Device\\ibal");
  w.send(Code::Open, 1, 0, in);
  EXPECT_EQ(w.receive().value().status, Status::InvalidState);
  w.attach();
  std::strcpy(in.path.data(), "\\Device\\ibal\\00000000000000ff");
  w.send(Code::Open, 1, 0, in);
  EXPECT_EQ(w.receive().value().status, Status::NotFound);
  in.path.fill('\x01');
  w.send(Code::Open, 1, 0, in);
  EXPECT_EQ(w.receive().value().status, Status::InvalidParameter);
  w.send(Code::Open, 1);
  EXPECT_EQ(w.receive().value().status, Status::Malformed);
}

TEST(DaemonSession, HasALimitOfFiles) {
  World w;
  w.attach();
  for (std::size_t i = 0; i < DaemonSession::kMaxFiles; ++i) w.open();
  control::OpenIn in;
  std::strcpy(in.path.data(), "\\Device\\ibal");
  w.send(Code::Open, 1, 0, in);
  EXPECT_EQ(w.receive().value().status, Status::InsufficientResources);
}

TEST(DaemonSession, TheEndHasAnOrder) {
  World w;
  w.attach();
  w.open();
  const std::uint32_t second = w.open();
  w.send(Code::WaitEvent, 1);
  w.send(Code::QueryCa, 2, second);
  w.run();
  EXPECT_EQ(w.devices.waiting.size(), 1u);
  w.client.reset();
  w.run();
  EXPECT_EQ(w.devices.waiting.size(), 0u);  // cancelled
  EXPECT_EQ(w.trail.back(), "disconnect");
  ASSERT_NE(w.session, nullptr);  // the driver still has a request of ours
  w.devices.release();
  w.run();
  EXPECT_EQ(w.session, nullptr);
  EXPECT_EQ(w.trail, (Trail{"create 0", "attached", "create 1", "create 2", "disconnect", "close 1",
                            "close 2", "close 0", "over"}));
}

TEST(DaemonSession, AFileThatIsOpenedWhileTheClientGoesIsClosed) {
  World w;
  w.attach();
  w.devices.hold_create = true;
  control::OpenIn in;
  std::strcpy(in.path.data(), "\\Device\\ibal");
  w.send(Code::Open, 1, 0, in);
  w.run();
  w.client.reset();
  w.run();
  EXPECT_EQ(w.trail.back(), "disconnect");
  w.devices.release();
  w.run();
  EXPECT_EQ(w.trail, (Trail{"create 0", "attached", "create 1", "disconnect", "close 1", "close 0",
                            "over"}));
}

// A driver that parks Close would answer a cancelled one without having closed its file.
TEST(DaemonSession, TheEndDoesNotCancelACloseThatIsUnderWay) {
  World w;
  w.attach();
  const std::uint32_t file = w.open();
  w.devices.hold_close = true;
  w.send(Code::Close, 1, 0, control::CloseIn{file, 0});
  w.run();
  ASSERT_EQ(w.devices.held.size(), 1u);
  w.client.reset();
  w.run();
  EXPECT_EQ(w.trail.back(), "disconnect");
  EXPECT_FALSE(w.devices.held.front()->is_cancelled());
  w.devices.hold_close = false;
  w.devices.release();
  w.run();
  EXPECT_EQ(w.trail, (Trail{"create 0", "attached", "create 1", "close 1", "disconnect", "close 0",
                            "over"}));
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

void send_with_descriptors(World& w, std::span<const std::byte> bytes,
                           std::span<const int> descriptors) {
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(5 * sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  ASSERT_GE(::sendmsg(w.client.get(), &message, 0), 0);
}

TEST(DaemonSession, PassesDescriptorsBothWaysAndKeepsNone) {
  World w;
  const std::array<int, 5> descriptors{0, 1, 2, 0, 1};
  const control::RequestHeader header{sizeof(header),
                                      static_cast<std::uint32_t>(Code::CreateChannel), 3, 0, 0};
  for (const std::size_t count : {1u, 2u, 3u, 5u}) {
    const std::ptrdiff_t before = open_descriptors();
    send_with_descriptors(w, std::as_bytes(std::span(&header, 1)),
                          std::span(descriptors).first(count));
    const Reply reply = w.receive().value();
    EXPECT_EQ(reply.status, count <= 2 ? Status::Ok : Status::InsufficientResources) << reply.body;
    EXPECT_EQ(reply.handles, count <= 2 ? count : 0);
    w.run();
    EXPECT_EQ(open_descriptors(), before) << count << " descriptors leave one open";
  }
}

TEST(DaemonSession, ARequestThatPendsKeepsNoDescriptorsThatItHasNoUseFor) {
  World w;
  const std::array<int, 2> descriptors{0, 1};
  const control::RequestHeader header{sizeof(header), static_cast<std::uint32_t>(Code::WaitEvent),
                                      3, 0, 0};
  const std::ptrdiff_t before = open_descriptors();
  send_with_descriptors(w, std::as_bytes(std::span(&header, 1)), descriptors);
  w.run();
  EXPECT_EQ(w.devices.waiting.size(), 1u);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(DaemonSession, AnEmptyMessageIsTheEndEvenIfItBringsDescriptors) {
  World w;
  w.run();
  const std::ptrdiff_t before = open_descriptors();
  const std::array<int, 2> descriptors{0, 1};
  send_with_descriptors(w, {}, descriptors);
  EXPECT_TRUE(w.hung_up());
  EXPECT_EQ(open_descriptors(), before - 1);  // the server's end of the connection
}

TEST(DaemonSession, MalformedMessagesAreAnsweredWhileThereIsATag) {
  World w;
  control::RequestHeader header{100, 1, 44, 0, 0};
  w.send_raw(&header, sizeof(header));
  Reply reply = w.receive().value();
  EXPECT_EQ(reply.tag, 44u);
  EXPECT_EQ(reply.status, Status::Malformed);
  const std::vector<char> huge(control::kMaxMessage + 1);
  w.send_raw(huge.data(), huge.size());
  EXPECT_EQ(w.receive().value().status, Status::Malformed);
  w.send(Code::Ping, 3);  // still usable
  EXPECT_EQ(w.receive().value().status, Status::Ok);
  w.send_raw(&header, 23);
  EXPECT_TRUE(w.hung_up());
}

TEST(DaemonSession, DoesNotReadMoreThanItsLimitOfPendingRequests) {
  World w;
  for (std::uint64_t i = 0; i < DaemonSession::kMaxPending + 10; ++i) w.send(Code::WaitEvent, i);
  w.run();
  EXPECT_EQ(w.devices.waiting.size(), DaemonSession::kMaxPending);
  for (int i = 0; i < 5; ++i) (*w.devices.waiting.take()).complete(Status::Ok);
  w.run();
  EXPECT_EQ(w.devices.waiting.size(), DaemonSession::kMaxPending);
  w.client.reset();  // noticed, though nothing is read
  w.run();
  EXPECT_EQ(w.session, nullptr);
}

TEST(DaemonSession, AClientThatNeverReadsIsNotReadFrom) {
  World w;
  const int small = 4096;
  ::setsockopt(w.client.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  const control::RequestHeader header{sizeof(header), 1, 0, 0, 0};
  std::size_t sent = 0;
  for (int stuck = 0; stuck < 20;) {
    if (::send(w.client.get(), &header, sizeof(header), MSG_DONTWAIT) > 0) {
      ++sent;
    } else {
      ++stuck;
      w.run();
    }
    ASSERT_LT(sent, 100000u);
  }
  std::size_t answered = 0;
  while (w.receive()) ++answered;  // and now it reads
  EXPECT_EQ(answered, sent);
}

TEST(DaemonSession, AConnectionHasOneMailbox) {
  World world;
  world.send(Code::OpenMailbox, 1);
  const Reply first = world.receive().value();
  EXPECT_EQ(first.status, Status::Ok);
  EXPECT_EQ(first.handles, 1u);
  world.send(Code::OpenMailbox, 2);
  const Reply second = world.receive().value();
  EXPECT_EQ(second.status, Status::InvalidState);
  EXPECT_EQ(second.body, "this connection has a mailbox already");
  EXPECT_EQ(second.handles, 0u);
}

TEST(DaemonSession, StatusIsAFileOrAReason) {
  World w;
  w.send(Code::Status, 1);
  EXPECT_EQ(w.receive().value().handles, 1u);
  w.devices.hold_create = true;
  w.send(Code::Status, 1);
  EXPECT_EQ(w.receive().value().body, "no memory");
}

TEST(DaemonSession, KeepAndShutdownReachTheHost) {
  World w;
  w.send(Code::Keep, 1, 0, control::KeepIn{1, 0});
  w.send(Code::Keep, 2, 0, control::KeepIn{0, 0});
  w.send(Code::Keep, 3);
  w.send(Code::Shutdown, 4);
  EXPECT_EQ(w.receive().value().status, Status::Ok);
  EXPECT_EQ(w.receive().value().status, Status::Ok);
  EXPECT_EQ(w.receive().value().status, Status::Malformed);
  EXPECT_EQ(w.receive().value().status, Status::Ok);
  EXPECT_EQ(w.trail, (Trail{"create 0", "keep", "do not keep", "shut down"}));
}

TEST(DaemonSession, AFabricThatOthersNeedDoesNotGoNow) {
  World w;
  w.others = "somebody";
  w.send(Code::Keep, 1, 0, control::KeepIn{0, 1});
  const auto refused = w.receive().value();
  EXPECT_EQ(refused.status, Status::DeviceBusy);
  EXPECT_EQ(refused.body, "somebody");
  w.others.clear();
  w.send(Code::Keep, 2, 0, control::KeepIn{0, 1});
  EXPECT_EQ(w.receive().value().status, Status::Ok);
  EXPECT_EQ(w.trail, (Trail{"create 0", "shut down"}));
}

}  // namespace
}  // namespace ib::softib
