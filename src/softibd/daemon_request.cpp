// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_request.h"

#include "base/assert.h"
#include "verbs/control_sm.h"
#include "verbs/control_streams.h"
#include "verbs/control_topology.h"
#include "verbs/control_umad.h"
#include "verbs/services/open_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::softib {
namespace {

using verbs::control::Code;
using verbs::control::kMaxMessage;
using verbs::control::ReplyHeader;
using verbs::control::RequestHeader;

enum class Target : std::uint8_t { None, Fabric, Hca, Service };

// A switch without default: the compiler reports a code that is missing here.
// NOLINTNEXTLINE(readability-function-size): a table
Target target_of(Code code) {
  switch (code) {
    case Code::Ping:
    case Code::Status:
    case Code::TraceRead:
    case Code::Shutdown:
    case Code::ViewStat:
    case Code::ViewOpen:
    case Code::ViewList:
    case Code::SetPort:
    case Code::Keep:
    case Code::Devices:
    case Code::ListNames:
    case Code::ChangeHca:
    case Code::ChangePartition:
    case Code::SetPower:
    case Code::ChangeDriver:
    case Code::Attach:
    case Code::Open:
    case Code::Close:
    case Code::WaitEvent:
    case Code::RaiseEvent:
    case Code::TraceError:
    case Code::CreateChannel:
    case Code::DestroyChannel:
    case Code::GetChannel:
    case Code::CreateBacking:
    case Code::DestroyBacking:
    case Code::GetBacking:
    case Code::SetAddresses:
    case Code::SetIpInterface:
    case Code::OpenRdmaCm:
    case Code::RdmaCm:
    case Code::OpenMailbox:
    case Code::Resources: return Target::Fabric;
    case Code::QueryCa:
    case Code::QueryPort:
    case Code::ModifyPort:
    case Code::QueryGid:
    case Code::QueryPkey:
    case Code::LocalMad:
    case Code::AllocPd:
    case Code::DeallocPd:
    case Code::RegMr:
    case Code::ReregMr:
    case Code::DeregMr:
    case Code::AllocMw:
    case Code::DeallocMw:
    case Code::AllocDm:
    case Code::FreeDm:
    case Code::QueryMr:
    case Code::RegPhysical:
    case Code::ReregPhysical:
    case Code::CreateAh:
    case Code::DestroyAh:
    case Code::CreateCq:
    case Code::ResizeCq:
    case Code::DestroyCq:
    case Code::OpenXrcd:
    case Code::CloseXrcd:
    case Code::CreateSrq:
    case Code::ModifySrq:
    case Code::QuerySrq:
    case Code::DestroySrq:
    case Code::CreateQp:
    case Code::OpenQp:
    case Code::ModifyQp:
    case Code::QueryQp:
    case Code::DestroyQp:
    case Code::AttachMcast:
    case Code::DetachMcast: return Target::Hca;
  }
  return Target::None;
}

// Of a code of any part of the protocol.
Target target_of(std::uint32_t code) {
  if (verbs::control::is_of_service_file(code)) return Target::Service;
  const bool is_of_fabric = verbs::control::is_umad(code) || verbs::control::is_topology(code) ||
                            verbs::control::is_stream(code) || verbs::control::is_sm(code) ||
                            verbs::control::is_service(code);
  return is_of_fabric ? Target::Fabric : target_of(static_cast<Code>(code));
}

// Returns the first mistake of a request whose header is complete; empty: none.
Status check(const RequestHeader& header, std::size_t size, MessageFlaws flaws,
             std::string& reason) {
  const auto fail = [&reason](Status status, std::string text) {
    reason = std::move(text);
    return status;
  };
  if (flaws.truncated) {
    return fail(Status::Malformed,
                fmt::format("a request has at most {} bytes; this one is longer", kMaxMessage));
  }
  if (header.length != size) {
    return fail(Status::Malformed, fmt::format("the header says {} bytes, but the message has {}",
                                               header.length, size));
  }
  if (header.reserved != 0)
    return fail(Status::Malformed, "the reserved field of the header must be 0");
  if (flaws.handles_lost) {
    return fail(
        Status::InsufficientResources,
        "file descriptors were lost: a request may bring 2, and softibd needs room for them");
  }
  const Target target = target_of(header.code);
  if (target == Target::None) {
    return fail(Status::NotSupported,
                fmt::format("request code {} is not known to this softibd (interface version {})",
                            header.code, verbs::control::kAbiVersion));
  }
  if (target == Target::Fabric && header.file != 0) {
    return fail(
        Status::InvalidParameter,
        fmt::format("request code {} goes to file 0, not to file {}", header.code, header.file));
  }
  if (target != Target::Fabric && header.file == 0) {
    const char* what = target == Target::Hca ? "an open HCA" : "a file of a service";
    return fail(Status::InvalidParameter,
                fmt::format("request code {} goes to {}, not to file 0", header.code, what));
  }
  return Status::Ok;
}

}  // namespace

ParsedRequest parse_request(std::span<const std::byte> message, MessageFlaws flaws) {
  ParsedRequest request;
  RequestHeader header;
  if (message.size() < sizeof(header)) {
    request.status = Status::Malformed;
    request.reason = fmt::format("a request begins with a header of {} bytes; this message has {}",
                                 sizeof(header), message.size());
    return request;
  }
  std::memcpy(&header, message.data(), sizeof(header));
  request.answerable = true;
  request.tag = header.tag;
  request.file = header.file;
  request.input = message.subspan(sizeof(header));
  request.status = check(header, message.size(), flaws, request.reason);
  if (request.status == Status::Ok) request.code = static_cast<Code>(header.code);
  return request;
}

std::size_t handles_of(Code code) {
  using verbs::control::UmadCode;
  const auto number = static_cast<std::uint32_t>(code);
  if (verbs::control::is_umad(number)) {
    const auto umad = static_cast<UmadCode>(number);
    return umad == UmadCode::Open ? 0 : umad == UmadCode::Send ? 2 : 1;
  }
  if (number == static_cast<std::uint32_t>(verbs::control::StreamCode::Connect)) return 1;
  if (code == Code::CreateChannel) return 2;
  return code == Code::CreateBacking ? 1 : 0;
}

void finish_reply(ReplyHeader header, std::span<std::byte> message) {
  IB_ASSERT(message.size() >= sizeof header);
  header.length = static_cast<std::uint32_t>(message.size());
  std::memcpy(message.data(), &header, sizeof header);
}

std::vector<std::byte> make_error_reply(std::uint64_t tag, Status status, std::string_view reason,
                                        std::span<const std::byte> output) {
  ReplyHeader header;
  header.tag = tag;
  header.status = static_cast<std::uint32_t>(status);
  header.information = output.size();
  const std::size_t before = sizeof header + output.size();
  const std::string_view text = reason.substr(0, std::size_t{kMaxMessage} - before);
  std::vector<std::byte> message(before + text.size());
  finish_reply(header, message);
  std::ranges::copy(output, message.begin() + sizeof header);
  if (!text.empty()) std::memcpy(message.data() + before, text.data(), text.size());
  return message;
}

}  // namespace ib::softib
