// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A client of softibd that consists of the public header and a socket, built for 32 and for 64 bit:
// the answers must be the same, field by field.
//
// control_client SOCKET   prints a transcript: each request, its status and its output.
#include "verbs/control.h"
#include "verbs/services/open_service.h"  // for its layout

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

namespace {

using namespace ib::verbs;
using namespace ib::verbs::control;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::fflush(stdout);
  std::_Exit(1);
}

struct Answer {
  ReplyHeader header;
  std::vector<std::byte> output;
  std::size_t fds = 0;
};

class Socket {
 public:
  explicit Socket(const char* path) : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) give_up(path);
    std::strcpy(address.sun_path, path);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      give_up(path);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd_); }

  Answer call(Code code, std::uint32_t file, std::span<const std::byte> in,
              std::span<const int> fds) {
    std::vector<std::byte> message(sizeof(RequestHeader) + in.size());
    const RequestHeader header{static_cast<std::uint32_t>(message.size()),
                               static_cast<std::uint32_t>(code), ++tag_, file, 0};
    std::memcpy(message.data(), &header, sizeof header);
    if (!in.empty()) std::memcpy(message.data() + sizeof header, in.data(), in.size());
    send(message, fds);
    return receive();
  }

 private:
  struct alignas(cmsghdr) Ancillary {
    std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> bytes{};
  };

  void send(std::span<std::byte> message, std::span<const int> fds) const {
    Ancillary ancillary;
    iovec data{message.data(), message.size()};
    msghdr envelope{};
    envelope.msg_iov = &data;
    envelope.msg_iovlen = 1;
    if (!fds.empty()) {
      envelope.msg_control = ancillary.bytes.data();
      envelope.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* part = CMSG_FIRSTHDR(&envelope);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
    }
    if (::sendmsg(fd_, &envelope, MSG_NOSIGNAL) < 0) give_up("sendmsg");
  }

  Answer receive() {
    std::vector<std::byte> message(kMaxMessage);
    Ancillary ancillary;
    iovec data{message.data(), message.size()};
    msghdr envelope{};
    envelope.msg_iov = &data;
    envelope.msg_iovlen = 1;
    envelope.msg_control = ancillary.bytes.data();
    envelope.msg_controllen = ancillary.bytes.size();
    const ssize_t length = ::recvmsg(fd_, &envelope, 0);
    Answer answer;
    if (length < static_cast<ssize_t>(sizeof answer.header)) give_up("recvmsg");
    std::memcpy(&answer.header, message.data(), sizeof answer.header);
    if (answer.header.length != static_cast<std::size_t>(length) || answer.header.tag != tag_)
      give_up("the answer's header");
    message.resize(static_cast<std::size_t>(length));
    answer.output.assign(message.begin() + sizeof answer.header, message.end());
    if (const cmsghdr* part = CMSG_FIRSTHDR(&envelope)) answer.fds = close_all(*part);
    return answer;
  }

  static std::size_t close_all(const cmsghdr& part) {
    const std::size_t count = (part.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(&part) + i * sizeof fd, sizeof fd);
      ::close(fd);
    }
    return count;
  }

  int fd_;
  std::uint64_t tag_ = 0;
};

struct None {};

class Transcript {
 public:
  explicit Transcript(const char* path) : socket_(path) {}

  // Sends it and prints the result.
  template <class Out = None, class In = None>
  Out call(const char* name, Code code, const In& in = {}, std::span<const int> fds = {}) {
    std::span<const std::byte> bytes;
    if constexpr (!std::is_same_v<In, None>) bytes = std::as_bytes(std::span(&in, 1));
    const bool is_root = static_cast<std::uint32_t>(code) < 32;
    const Answer answer = socket_.call(code, is_root ? 0 : file, bytes, fds);
    last = static_cast<std::uint32_t>(answer.header.information);
    const auto status = static_cast<ib::Status>(answer.header.status);
    std::printf("%s: %s, information %" PRIu64 ", %zu fds", name, status_text(status),
                answer.header.information, answer.fds);
    Out out{};
    if (status != ib::Status::Ok) {
      std::printf("%s", answer.output.empty() ? "" : ", and why");  // in words that may change
    } else {
      std::printf(", %zu bytes", answer.output.size());
      if constexpr (!std::is_same_v<Out, None>) {
        if (answer.output.size() != sizeof(Out)) give_up("the size of the output");
        std::memcpy(static_cast<void*>(&out), answer.output.data(), sizeof out);
      }
    }
    std::printf("\n");
    return out;
  }
  static void field(const char* name, std::uint64_t value) {
    std::printf("  %s = %" PRIu64 "\n", name, value);
  }

  std::uint32_t file = 0;  // the file of requests to an HCA
  std::uint32_t last = 0;  // information of the last answer

 private:
  Socket socket_;
};

template <class E>
std::uint64_t number(E value) {
  return static_cast<std::uint64_t>(value);
}

void enter(Transcript& t) {
  t.call("Ping", Code::Ping);
  t.call("Open too early", Code::Open, OpenIn{});
  AttachIn attach;
  attach.abi = kAbiVersion + 1;
  t.call("Attach of another version", Code::Attach, attach);
  attach.abi = kAbiVersion;
  const auto attached = t.call<AttachOut>("Attach", Code::Attach, attach);
  t.field("slot_generation", attached.slot_generation);
  t.field("arena_size", attached.arena_size);
  t.field("ca_count", attached.ca_count);
  t.field("guid of the first", attached.cas[0].node_guid);
  std::printf("  %s on %s\n", attached.cas[0].name.data(), attached.node.data());
  OpenIn open;
  std::strcpy(open.path.data(), "\\Device\\ibal");
  const auto opened = t.call<OpenOut>("Open", Code::Open, open);
  t.field("guid", opened.ca.node_guid);
  t.field("first_port", opened.first_port);
  t.file = t.last;
}

void query(Transcript& t) {
  const auto ca = t.call<CaAttr>("QueryCa", Code::QueryCa);
  t.field("node_guid", ca.node_guid);
  t.field("max_mr_size", ca.max_mr_size);
  t.field("max_qp", ca.max_qp);
  t.field("max_xrcd", ca.max_xrcd);
  t.field("port_count", ca.port_count);
  t.field("max_dm_size", ca.max_dm_size);
  const auto port = t.call<PortAttr>("QueryPort", Code::QueryPort, PortIn{1, 0});
  t.field("state", number(port.state));
  t.field("lid", port.lid);
  t.field("phys_state", port.phys_state);
  t.call("QueryPort of none", Code::QueryPort, PortIn{9, 0});
  const auto gid = t.call<GidOut>("QueryGid", Code::QueryGid, TableIn{1, 0});
  t.field("last byte of the GID", gid.gid.back());
  t.field("type", static_cast<std::uint32_t>(gid.type));
  const auto pkey = t.call<PkeyOut>("QueryPkey", Code::QueryPkey, TableIn{1, 0});
  t.field("pkey", pkey.pkey);
  const auto mad =
      t.call<MadOut>("LocalMad", Code::LocalMad,
                     MadIn{1, 0, {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0x11}});
  t.field("method of the answer", mad.mad[3]);
  t.field("type of the node", mad.mad[66]);
  t.call("LocalMad of a response", Code::LocalMad, MadIn{1, 0, {1, 1, 1, 0x81}});
}

struct Made {
  std::uint32_t pd = 0, cq = 0, mr = 0, dm = 0, srq = 0, qp = 0, ah = 0;
};

void show_qp(Transcript& t, const Made& made) {
  ModifyQpIn modify;
  modify.index = made.qp;
  modify.mask = qp_attr::kState | qp_attr::kPort | qp_attr::kPkeyIndex | qp_attr::kAccessFlags;
  modify.attr.state = QpState::Init;
  modify.attr.port = 1;
  modify.attr.access = access::kRemoteWrite;
  const auto moved = t.call<ModifyQpOut>("ModifyQp", Code::ModifyQp, modify);
  t.field("old_state", number(moved.old_state));
  t.field("state", number(moved.state));
  modify.attr.state = QpState::Rts;
  t.call("ModifyQp by a leap", Code::ModifyQp, modify);
  const auto queried = t.call<QueryQpOut>("QueryQp", Code::QueryQp, IndexIn{made.qp, 0});
  t.field("state", number(queried.attr.state));
  t.field("port", queried.attr.port);
  t.field("access", queried.attr.access);
  t.field("max_send_wr", queried.caps.max_send_wr);
  t.field("max_inline", queried.caps.max_inline);
}

void make_queues(Transcript& t, Made& made) {
  const auto cq = t.call<CqOut>("CreateCq", Code::CreateCq, CreateCqIn{10, kNoIndex, 0, 0, 7});
  made.cq = t.last;
  t.field("cqe", cq.cqe);
  t.field("slots", cq.slots);
  const auto resized = t.call<CqOut>("ResizeCq", Code::ResizeCq, ResizeCqIn{made.cq, 100});
  t.field("slots", resized.slots);
  CreateSrqIn srq_in;
  srq_in.pd = made.pd;
  srq_in.max_wr = 100;
  srq_in.max_sge = 3;
  const auto srq = t.call<SrqOut>("CreateSrq", Code::CreateSrq, srq_in);
  made.srq = t.last;
  t.field("stride", srq.stride);
  t.field("srqn", srq.srqn);
  CreateQpIn qp_in;
  qp_in.pd = made.pd;
  qp_in.send_cq = made.cq;
  qp_in.recv_cq = made.cq;
  qp_in.srq = made.srq;
  qp_in.caps = {16, 0, 2, 0, 64, 0};
  qp_in.cookie = 0x1122334455667788;
  const auto qp = t.call<QpOut>("CreateQp", Code::CreateQp, qp_in);
  made.qp = t.last;
  t.field("qpn", qp.qpn);
  t.field("max_send_sge", qp.caps.max_send_sge);
  t.field("rq_slots", qp.rq_slots);
  show_qp(t, made);
}

void make_memory(Transcript& t, Made& made) {
  t.call("AllocPd", Code::AllocPd);
  made.pd = t.last;
  RegMrIn region;
  region.pd = made.pd;
  region.access = access::kLocalWrite;
  region.address = 0xfffff0001000;  // outside a 32-bit process; softibd only stores it
  region.length = 0x123456789;
  region.iova = region.address;
  const auto mr = t.call<MrOut>("RegMr", Code::RegMr, region);
  made.mr = t.last;
  t.field("lkey", mr.lkey);
  t.field("address", mr.address);
  t.field("length", mr.length);
  PhysicalIn physical;
  physical.pd = made.pd;
  physical.iova = 0xfffff0001000;
  physical.count = 1;
  physical.ranges[0] = {0xfffff0001000, 4096};
  t.call<MrOut>("RegPhysical by a program", Code::RegPhysical, physical);
  t.call<DmOut>("AllocDm", Code::AllocDm, AllocDmIn{10000, 12, 0});
  made.dm = t.last;
  CreateAhIn ah;
  ah.pd = made.pd;
  ah.av.dlid = 1;
  ah.av.port = 1;
  t.call("CreateAh", Code::CreateAh, ah);
  made.ah = t.last;
}

void use_wrong_handles(Transcript& t, const Made& made) {
  t.call("DeallocPd in use", Code::DeallocPd, IndexIn{made.pd, 0});
  t.call("DestroyCq in use", Code::DestroyCq, IndexIn{made.cq, 0});
  t.call("DestroyQp of none", Code::DestroyQp, IndexIn{4711, 0});
  t.call("QueryMr of none", Code::QueryMr, IndexIn{4711, 0});
  t.call("CreateCq with a buffer of another size", Code::CreateCq, IndexIn{10, 0});
  t.call("a code that does not exist", static_cast<Code>(199), IndexIn{});
  const std::uint32_t file = t.file++;
  t.call("QueryCa of a file that is not open", Code::QueryCa);
  t.file = file;
}

void use_channel(Transcript& t) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) give_up("pipe");
  t.call("CreateChannel", Code::CreateChannel, None{}, ends);
  const std::uint32_t channel = t.last;
  // Posters read the generation in device memory; the first channel of a fabric has 2.
  t.call("GetChannel", Code::GetChannel, GenerationIn{index_of(channel), 2});
  t.call("GetChannel of another generation", Code::GetChannel, GenerationIn{index_of(channel), 77});
  t.call("DestroyChannel", Code::DestroyChannel, IndexIn{channel, 0});
  for (const int end : ends) ::close(end);
}

void view(Transcript& t) {
  ViewIn in;
  std::strcpy(in.path.data(), "/sys/class/infiniband");
  const auto stat = t.call<ViewStatOut>("ViewStat", Code::ViewStat, in);
  t.field("kind", number(stat.kind));
  t.field("mode", stat.mode);
  std::strcpy(in.path.data(), "/nowhere");
  t.call("ViewStat of none", Code::ViewStat, in);
}

void leave(Transcript& t, const Made& made) {
  t.call("DestroyQp", Code::DestroyQp, IndexIn{made.qp, 0});
  t.call("DestroyQp again", Code::DestroyQp, IndexIn{made.qp, 0});
  t.call("DestroySrq", Code::DestroySrq, IndexIn{made.srq, 0});
  t.call("DestroyCq", Code::DestroyCq, IndexIn{made.cq, 0});
  t.call("DestroyAh", Code::DestroyAh, IndexIn{made.ah, 0});
  t.call("FreeDm", Code::FreeDm, IndexIn{made.dm, 0});
  t.call("DeregMr", Code::DeregMr, IndexIn{made.mr, 0});
  t.call("DeallocPd", Code::DeallocPd, IndexIn{made.pd, 0});
  t.call("Close", Code::Close, CloseIn{t.file, 0});
  t.call("Close again", Code::Close, CloseIn{t.file, 0});
}

// The device tree. The HCA goes when its last file is closed.
void change_tree(Transcript& t) {
  t.call("Devices", Code::Devices);
  ViewIn names;
  std::strcpy(names.path.data(), "\\Device\\ibal");
  t.call("ListNames", Code::ListNames, names);
  std::strcpy(names.path.data(), "\\Nothing");
  t.call("ListNames of none", Code::ListNames, names);
  ChangePartitionIn partition;
  std::strcpy(partition.ca.data(), "softib0");
  partition.port = 1;
  partition.pkey = 0x8001;
  std::strcpy(partition.name.data(), "itest");
  t.call("ChangePartition", Code::ChangePartition, partition);
  t.call("ChangePartition again", Code::ChangePartition, partition);
  partition.remove = 1;
  t.call("ChangePartition: remove", Code::ChangePartition, partition);
  t.call("ChangePartition: remove again", Code::ChangePartition, partition);
  ChangeHcaIn hca;
  std::strcpy(hca.ca.data(), "softib0");
  hca.action = HcaAction::Remove;
  t.call("ChangeHca: remove", Code::ChangeHca, hca);
  t.call("ChangeHca: remove again", Code::ChangeHca, hca);
  hca.action = HcaAction::Add;
  const auto back = t.call<CaName>("ChangeHca: add", Code::ChangeHca, hca);
  std::printf("  %s\n", back.name.data());
  t.field("guid", back.node_guid);
  SetPowerIn power;
  power.state = PowerState::Sleep;
  t.call("SetPower: sleep", Code::SetPower, power);
  t.call("SetPower: sleep again", Code::SetPower, power);
  power.state = PowerState::Working;
  t.call("SetPower: working", Code::SetPower, power);
  ChangeDriverIn driver;
  std::strcpy(driver.name.data(), "nosuch");
  t.call("ChangeDriver: load", Code::ChangeDriver, driver);
  driver.unload = 1;
  t.call("ChangeDriver: unload", Code::ChangeDriver, driver);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: control_client SOCKET\n");
    return 2;
  }
  Transcript transcript(argv[1]);
  Made made;
  enter(transcript);
  query(transcript);
  make_memory(transcript, made);
  make_queues(transcript, made);
  use_wrong_handles(transcript, made);
  use_channel(transcript);
  view(transcript);
  leave(transcript, made);
  change_tree(transcript);
  return 0;
}
