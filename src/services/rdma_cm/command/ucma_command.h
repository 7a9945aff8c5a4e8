// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the bytes that a program writes to /dev/infiniband/rdma_cm to a command. Pure. The checks
// and their order are those of Linux, so that each mistake gets the error that it gets there.
#pragma once

#include "services/rdma_cm/command/endpoint_address.h"
#include "services/rdma_cm/command/ucma_layout.h"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

namespace ib::services::rdma_cm {

using ucma::Error;

// A command, read and checked as far as it can be without the id that it names.
namespace command {
struct Bind {
  std::uint32_t id = 0;
  EndpointAddress address;
};
struct ResolveAddress {
  std::uint32_t id = 0;
  std::optional<EndpointAddress> source;
  EndpointAddress destination;
};
struct QueryRoute {
  std::uint32_t id = 0;
};
struct Query {
  std::uint32_t id = 0;
  ucma::QueryOption option = ucma::QueryOption::Addr;
};
struct Join {
  std::uint32_t id = 0;
  std::uint64_t uid = 0;
  std::uint16_t flags = 0;
  EndpointAddress group;
};
struct Leave {
  std::uint32_t membership = 0;
};
struct Destroy {
  std::uint32_t id = 0;
};
}  // namespace command

using CommandBody =
    std::variant<ucma::CreateId, command::Destroy, command::Bind, command::ResolveAddress,
                 ucma::ResolveRoute, command::QueryRoute, ucma::Connect, ucma::Listen, ucma::Accept,
                 ucma::Reject, ucma::Disconnect, ucma::InitQpAttr, ucma::GetEvent, ucma::SetOption,
                 ucma::Notify, command::Join, command::Leave, ucma::MigrateId, command::Query,
                 ucma::WriteCmEvent>;

struct Command {
  CommandBody body;
  std::uint64_t response = 0;  // where the program wants the answer
  std::uint16_t room = 0;      // for the answer
};

// The longest command that is looked at; what is behind it does not matter.
inline constexpr std::size_t kMaxCommand = 512;

// `bytes`: the first kMaxCommand bytes of what was written; `size`: of all.
struct ParsedCommand {
  Error error = Error::None;
  Command command;
};
ParsedCommand parse_command(std::span<const std::uint8_t> bytes, std::uint64_t size);

}  // namespace ib::services::rdma_cm
