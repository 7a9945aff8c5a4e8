// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/drop_words.h"

#include "base/big_endian.h"
#include "cm/messages/format.h"
#include "services/sa/fabric_topology.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <cstring>

namespace ib::services {
namespace {

// Returns nullptr if the class has no such message.
const char* name_of(cm::Attribute attribute) {
  switch (attribute) {
    case cm::Attribute::ClassPortInfo: return "ClassPortInfo";
    case cm::Attribute::Req: return "REQ";
    case cm::Attribute::Mra: return "MRA";
    case cm::Attribute::Rej: return "REJ";
    case cm::Attribute::Rep: return "REP";
    case cm::Attribute::Rtu: return "RTU";
    case cm::Attribute::Dreq: return "DREQ";
    case cm::Attribute::Drep: return "DREP";
    case cm::Attribute::SidrReq: return "SIDR_REQ";
    case cm::Attribute::SidrRep: return "SIDR_REP";
    case cm::Attribute::Lap: return "LAP";
    case cm::Attribute::Apr: return "APR";
  }
  return nullptr;
}

const char* words_of(CmDrop why) {
  switch (why) {
    case CmDrop::Malformed: return "that is malformed";
    case CmDrop::WrongId: return "that names no connection of its sender";
    case CmDrop::OutOfPlace: return "that does not fit the state of its connection";
  }
  return "";
}

std::string sender_of(const fabric::Fabric& fabric, const cm::MadAddress& from) {
  const fabric::Port* port = from.is_global ? fabric.graph().find_port(from.remote_gid)
                                            : fabric.graph().find_port(from.remote_lid);
  std::string text = from.is_global ? verbs::address_text(from.remote_gid)
                                    : fmt::format("LID {}", from.remote_lid);
  return port != nullptr ? fmt::format("{} ({})", text, port_text(fabric, *port)) : text;
}

// Messages begin with the sender's communication ID, and then have the receiver's; those of
// datagram services with the number of the request.
std::string content_of(const mad::Mad& mad, cm::Attribute attribute) {
  const auto number_at = [&mad](std::size_t at) {
    Be32 number;
    std::memcpy(&number, mad.data() + at, sizeof number);
    return std::uint32_t{number};
  };
  constexpr std::size_t kFirst = sizeof(mad::MadHeader);
  const bool is_sidr = attribute == cm::Attribute::SidrReq || attribute == cm::Attribute::SidrRep;
  if (is_sidr) return fmt::format("request {:#x}", number_at(kFirst));
  return fmt::format("communication IDs {:#x} of the sender, {:#x} of the receiver",
                     number_at(kFirst), number_at(kFirst + 4));
}

}  // namespace

std::optional<CmDrop> drop_of(const cm::Counters& before, const cm::Counters& after) {
  if (after.sent != before.sent) return std::nullopt;
  if (after.malformed != before.malformed) return CmDrop::Malformed;
  if (after.wrong_comm_id != before.wrong_comm_id) return CmDrop::WrongId;
  if (after.wrong_state != before.wrong_state) return CmDrop::OutOfPlace;
  return std::nullopt;
}

std::string drop_text(const fabric::Fabric& fabric, const fabric::Hca& hca, CmDrop why,
                      const mad::Mad& mad, const cm::MadAddress& from) {
  const mad::MadHeader header = mad::header_of(mad);
  const std::uint16_t attribute = header.attribute;
  const char* name = name_of(static_cast<cm::Attribute>(attribute));
  const bool has_port = from.port >= 1 && from.port <= hca.ports.size();
  const std::string details =
      name == nullptr || why == CmDrop::Malformed
          ? fmt::format("method {:#04x}, attribute {:#06x}", header.method, attribute)
          : content_of(mad, static_cast<cm::Attribute>(attribute));
  return fmt::format("{} dropped a {} {}: {}, from {}",
                     has_port ? port_text(fabric, hca.ports[from.port - 1u]) : hca.name,
                     name != nullptr ? name : "message of the communication manager", words_of(why),
                     details, sender_of(fabric, from));
}

}  // namespace ib::services
