// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "peer/raw_client.h"

#include "base/buffers.h"
#include "linux/process/client_handle.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ib::conformance {

using control::Code;

std::unique_ptr<RawClient> RawClient::connect(const std::string& socket) {
  auto handle = os::own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.c_str(), std::min(socket.size(), sizeof address.sun_path));
  if (::connect(handle.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return nullptr;
  }
  return std::unique_ptr<RawClient>(new RawClient(std::move(handle)));
}

void RawClient::send(Code code, std::uint32_t file, std::span<const std::byte> in,
                     std::span<const int> handles) {
  control::RequestHeader header;
  header.length = static_cast<std::uint32_t>(sizeof header + in.size());
  header.code = static_cast<std::uint32_t>(code);
  header.tag = ++last_tag_;
  header.file = file;
  std::array<iovec, 2> parts{iovec{&header, sizeof header},
                             iovec{const_cast<std::byte*>(in.data()), in.size()}};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * control::kMaxFds)> ancillary{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!handles.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = CMSG_SPACE(handles.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(handles.size_bytes());
    std::memcpy(CMSG_DATA(rights), handles.data(), handles.size_bytes());
  }
  Answer answer;
  answer.code = code;
  answer.file = file;
  under_way_.emplace(header.tag, std::move(answer));
  EXPECT_GT(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL), 0) << "softibd closed a connection";
}

std::optional<RawClient::Answer> RawClient::receive(int milliseconds) {
  pollfd waiting{socket_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds) <= 0) return std::nullopt;
  std::array<std::byte, 8192> bytes;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * control::kMaxFds)> ancillary{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    std::array<int, control::kMaxFds> fds{};
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(fds.data(), CMSG_DATA(c), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) ::close(fds[i]);
  }
  control::ReplyHeader header;
  if (got < static_cast<ssize_t>(sizeof header)) {
    ADD_FAILURE() << "softibd closed a connection";
    under_way_.clear();
    return std::nullopt;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto found = under_way_.find(header.tag);
  if (found == under_way_.end()) {
    ADD_FAILURE() << "an answer to a request that is not under way";
    return std::nullopt;
  }
  Answer answer = std::move(found->second);
  under_way_.erase(found);
  answer.status = static_cast<Status>(header.status);
  answer.information = header.information;
  if (answer.status != Status::Ok) {
    answer.reason.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof header,
                         static_cast<std::size_t>(got) - sizeof header);
  }
  return answer;
}

std::size_t RawClient::under_way(bool with_waits) const {
  return static_cast<std::size_t>(
      std::count_if(under_way_.begin(), under_way_.end(), [with_waits](const auto& entry) {
        return with_waits || entry.second.code != Code::WaitEvent;
      }));
}

// --- One life ---

namespace {

constexpr std::size_t kMostUnderWay = 24;  // softibd reads at most 64
constexpr unsigned kMostSteps = 60;

// Statuses that no request of a correct client gets.
bool is_odd(Status status) {
  return status == Status::Pending || status == Status::Malformed || status == Status::Timeout ||
         status == Status::NotSupported || status == Status::IoError ||
         static_cast<std::size_t>(status) >= kStatusCount;
}

}  // namespace

void RawLife::run() {
  client_ = RawClient::connect(socket_);
  ASSERT_NE(client_, nullptr);
  control::AttachIn attach;
  put_text(attach.node, pick(2) == 0 ? "east" : "west");
  put_text(attach.program, "raw");
  send(Code::Attach, 0, attach);
  for (unsigned steps = pick(kMostSteps); steps > 0; --steps) {
    if (client_->under_way(true) < kMostUnderWay) step();
    while (const auto answer = client_->receive(
               files_.empty() || client_->under_way(true) >= kMostUnderWay ? 1 : 0)) {
      take_note(*answer);
    }
  }
  // It either ends with requests under way or reads all answers first.
  const bool hears = pick(3) == 0;
  while (hears && client_->under_way(false) > 0) {
    if (const auto answer = client_->receive(100)) take_note(*answer);
  }
  client_.reset();
}

void RawLife::step() {
  const unsigned dice = pick(10);
  if (files_.empty() && client_->under_way(false) > 0) return;  // until one is open
  if (files_.empty() || dice == 0) {
    control::OpenIn open;
    put_text(open.path, "\\Device\\ibal");
    return send(Code::Open, 0, open);
  }
  if (dice == 1) return ask_root();
  if (dice == 2) return destroy_something();
  ask_hca(files_[pick(static_cast<unsigned>(files_.size()))]);
}

void RawLife::ask_root() {
  switch (pick(6)) {
    case 0: return client_->send(Code::WaitEvent, 0, {});
    case 1: return client_->send(Code::Status, 0, {});
    case 2: return client_->send(Code::Devices, 0, {});
    case 3: return send(Code::TraceRead, 0, control::TraceReadIn{});
    case 4: {
      const std::size_t at = pick(static_cast<unsigned>(files_.size()));
      const control::CloseIn close{files_[at], 0};
      files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(at));
      std::erase_if(objects_, [&](const Object& o) { return o.file == close.file; });
      return send(Code::Close, 0, close);
    }
    default: {
      std::array<int, 2> ends{};
      ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
      client_->send(Code::CreateChannel, 0, {}, ends);
      for (const int end : ends) ::close(end);
    }
  }
}

// Returns an object of the file, or a handle that does not exist.
std::uint32_t RawLife::some(Code destroy, std::uint32_t file) {
  for (unsigned tries = 0; tries < 8 && !objects_.empty(); ++tries) {
    const Object& object = objects_[pick(static_cast<unsigned>(objects_.size()))];
    if (object.destroy == destroy && object.file == file) return object.handle;
  }
  return pick(8);
}

void RawLife::ask_hca(std::uint32_t file) {
  switch (pick(11)) {
    case 0: return client_->send(Code::AllocPd, file, {});
    case 1: return send(Code::CreateCq, file, control::CreateCqIn{1 + pick(300)});
    case 2: {
      control::RegMrIn in;
      in.pd = some(Code::DeallocPd, file);
      in.access = verbs::access::kLocalWrite;
      in.address = in.iova = 0x10000;
      in.length = 4096;
      return send(Code::RegMr, file, in);
    }
    case 3:
    case 4: {
      control::CreateQpIn in;
      in.type = pick(2) == 0 ? verbs::QpType::Rc : verbs::QpType::Ud;
      in.pd = some(Code::DeallocPd, file);
      in.send_cq = in.recv_cq = some(Code::DestroyCq, file);
      in.caps = {16, 16, 2, 2, 64, 0};
      return send(Code::CreateQp, file, in);
    }
    case 5: {
      control::CreateSrqIn in;
      in.pd = some(Code::DeallocPd, file);
      in.max_wr = 16;
      in.max_sge = 2;
      return send(Code::CreateSrq, file, in);
    }
    case 6: {
      control::CreateAhIn in;
      in.pd = some(Code::DeallocPd, file);
      in.av.dlid = 1;
      in.av.port = 1;
      return send(Code::CreateAh, file, in);
    }
    case 7: return send(Code::AllocDm, file, control::AllocDmIn{4096, 6, 0});
    case 8: return send(Code::QueryPort, file, control::PortIn{1 + pick(2), 0});
    case 9: return send(Code::OpenXrcd, file, control::OpenXrcdIn{pick(3), 1, 1, 0});
    default: {
      control::ModifyQpIn in;
      in.index = some(Code::DestroyQp, file);
      in.mask = verbs::qp_attr::kState;
      in.attr.state = pick(2) == 0 ? verbs::QpState::Error : verbs::QpState::Reset;
      return send(Code::ModifyQp, file, in);
    }
  }
}

void RawLife::destroy_something() {
  if (objects_.empty()) return;
  const std::size_t at = pick(static_cast<unsigned>(objects_.size()));
  const Object object = objects_[at];
  objects_.erase(objects_.begin() + static_cast<std::ptrdiff_t>(at));
  send(object.destroy, object.file, control::IndexIn{object.handle, 0});
}

void RawLife::take_note(const RawClient::Answer& answer) {
  EXPECT_FALSE(is_odd(answer.status))
      << "request " << static_cast<unsigned>(answer.code) << ": " << answer.reason;
  if (answer.status != Status::Ok) return;
  const auto handle = static_cast<std::uint32_t>(answer.information);
  if (answer.code == Code::Open) files_.push_back(handle);
  static constexpr std::pair<Code, Code> kMade[] = {{Code::AllocPd, Code::DeallocPd},
                                                    {Code::CreateCq, Code::DestroyCq},
                                                    {Code::RegMr, Code::DeregMr},
                                                    {Code::CreateQp, Code::DestroyQp},
                                                    {Code::CreateSrq, Code::DestroySrq},
                                                    {Code::CreateAh, Code::DestroyAh},
                                                    {Code::AllocDm, Code::FreeDm},
                                                    {Code::OpenXrcd, Code::CloseXrcd},
                                                    {Code::CreateChannel, Code::DestroyChannel}};
  for (const auto& [made, destroy] : kMade) {
    if (made == answer.code) objects_.push_back({destroy, answer.file, handle});
  }
}

}  // namespace ib::conformance
