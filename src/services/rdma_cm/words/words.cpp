// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/words/words.h"

#include "services/rdma_cm/addresses/interface_places.h"
#include "services/sa/fabric_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ib::services::rdma_cm {
namespace {

using ucma::Error;

constexpr std::size_t kMostNamed = 8;

bool is_of(const verbs::Gid& ip, Family family) {
  return verbs::is_ipv4(ip) == (family == Family::Ipv4);
}

// "127.77.0.1 (node0), 127.77.0.2 (node1) ...": the first ones of that family.
std::string addresses_of_all(const fabric::Fabric& fabric, Family family) {
  std::string text;
  std::size_t named = 0;
  for (const fabric::Node& node : fabric.nodes()) {
    for (const fabric::Address& address : node.addresses) {
      if (!is_of(address.ip, family)) continue;
      if (++named > kMostNamed) return text + " ...";
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", verbs::address_text(address.ip),
                          node.name);
    }
  }
  return text;
}

std::string addresses_of(const fabric::Node& node) {
  std::string text;
  for (const fabric::Address& address : node.addresses) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", verbs::address_text(address.ip));
  }
  return text.empty() ? "no address" : text;
}

const fabric::Node* owner_of(const fabric::Fabric& fabric, const EndpointAddress& address) {
  if (const fabric::Node* node = fabric.find_node_by_address(address.ip)) return node;
  if (const fabric::Node* node = interface_owner(fabric, address)) return node;
  const fabric::Port* port = fabric.graph().find_port(address.ip);
  return port != nullptr && port->is_ethernet() ? &fabric.node_of(*fabric.hca_of(*port)) : nullptr;
}

bool has_usable_port(const fabric::Fabric& fabric, const fabric::Node& node, bool ethernet) {
  return std::any_of(node.hcas.begin(), node.hcas.end(), [&](const fabric::Hca& hca) {
    return std::any_of(hca.ports.begin(), hca.ports.end(), [&](const fabric::Port& port) {
      return port.is_ethernet() == ethernet && is_usable(fabric, port);
    });
  });
}

const char* link_layer_of(bool ethernet) {
  return ethernet ? "Ethernet" : "InfiniBand";
}

// Why a node has no usable port: "port 1 of softib0 of node1 is down".
std::string ports_text(const fabric::Fabric& fabric, const fabric::Node& node) {
  std::string text;
  std::size_t named = 0;
  for (const fabric::Hca& hca : node.hcas) {
    for (const fabric::Port& port : hca.ports) {
      if (is_usable(fabric, port)) continue;
      if (++named > kMostNamed) return text + " ...";
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", port_text(fabric, port),
                          out_of_service(fabric, port));
    }
  }
  return text.empty() ? fmt::format("{} has no HCA", node.name) : text;
}

// The ports of this node and those of its peer's are of different kinds; empty: they are not.
std::string link_layers_text(const fabric::Fabric& fabric, const fabric::Node& node,
                             const fabric::Node& peer) {
  for (const bool ethernet : {false, true}) {
    const bool apart =
        has_usable_port(fabric, node, ethernet) && !has_usable_port(fabric, node, !ethernet) &&
        has_usable_port(fabric, peer, !ethernet) && !has_usable_port(fabric, peer, ethernet);
    if (!apart) continue;
    return fmt::format(
        "{} has {} ports only, {} has {} ports only, and the two link layers do not reach each "
        "other",
        node.name, link_layer_of(ethernet), peer.name, link_layer_of(!ethernet));
  }
  return {};
}

std::string no_owner_text(const fabric::Fabric& fabric, const fabric::Node& node,
                          const EndpointAddress& destination) {
  const std::string all = addresses_of_all(fabric, destination.family);
  const char* family = destination.family == Family::Ipv4 ? "IPv4" : "IPv6";
  if (owner_of(fabric, destination) != nullptr) {
    return fmt::format("{} has no {} address to connect from", node.name, family);
  }
  return fmt::format(
      "{} belongs to no node of this fabric; {}", verbs::address_text(destination.ip),
      all.empty() ? fmt::format("its nodes have no {} address", family) : "nodes have " + all);
}

bool share_partition(const fabric::Port& from, const fabric::Port& to) {
  return std::any_of(from.pkeys.begin(), from.pkeys.end(), [&to](std::uint16_t one) {
    return (one & 0x7fff) != 0 &&
           std::any_of(to.pkeys.begin(), to.pkeys.end(),
                       [one](std::uint16_t other) { return verbs::share_partition(one, other); });
  });
}

// The interfaces that have the address are in other partitions, at ports that are down, or where no
// cable leads.
std::string out_of_reach_text(const fabric::Fabric& fabric, const fabric::Node& node,
                              const EndpointAddress& destination) {
  std::string text;
  std::size_t named = 0;
  for (const auto& holder : fabric.ip_interfaces().with_address(destination.ip)) {
    const fabric::IpInterface& at = *holder.interface;
    if (++named > kMostNamed) {
      text += " ...";
      break;
    }
    text += fmt::format("{}{} of {} (P_Key {:#06x}{}{})", text.empty() ? "" : ", ", at.name,
                        fabric.nodes()[holder.node].name, at.pkey,
                        is_usable(fabric, *at.port) ? "" : "; its port ",
                        out_of_service(fabric, *at.port));
  }
  return fmt::format("{} is at {}, and the interface of {} that would lead there does not reach it",
                     verbs::address_text(destination.ip), text, node.name);
}

}  // namespace

std::string place_text(const fabric::Fabric& fabric, const EndpointAddress& address) {
  const fabric::Node* node = owner_of(fabric, address);
  return node == nullptr ? text_of(address) : fmt::format("{} ({})", text_of(address), node->name);
}

std::string no_way_text(const fabric::Fabric& fabric, const fabric::Node& node,
                        const EndpointAddress& source, const EndpointAddress& destination,
                        ucma::Error error) {
  const bool to_self = is_any(destination) || is_loopback(destination);
  const fabric::Node* peer = to_self ? &node : owner_of(fabric, destination);
  if (error == Error::HostUnreachable && is_between_interfaces(fabric, node, source, destination))
    return out_of_reach_text(fabric, node, destination);
  if (error == Error::NetUnreachable) return no_owner_text(fabric, node, destination);
  if (peer != nullptr) {
    std::string apart = link_layers_text(fabric, node, *peer);
    if (!apart.empty()) return apart;
  }
  if (error == Error::HostUnreachable && peer != nullptr) return ports_text(fabric, *peer);
  const fabric::Port* port = is_any(source) ? nullptr : fabric.graph().find_port(source.ip);
  if (port != nullptr && !is_usable(fabric, *port)) {
    return fmt::format("{} {}", port_text(fabric, *port), out_of_service(fabric, *port));
  }
  return ports_text(fabric, node);
}

std::string obstacle_text(const fabric::Fabric& fabric, const fabric::Port& from,
                          const fabric::Port* to) {
  const auto fault = [&fabric](const fabric::Port& port) {
    return fmt::format("{} {}", port_text(fabric, port), out_of_service(fabric, port));
  };
  if (*out_of_service(fabric, from) != '\0') return fault(from);
  if (to == nullptr) return "no port has the address of the path any more";
  if (*out_of_service(fabric, *to) != '\0') return fault(*to);
  if (from.is_ethernet() != to->is_ethernet()) {
    return fmt::format("{} is an {} port, {} an {} port", port_text(fabric, from),
                       link_layer_of(from.is_ethernet()), port_text(fabric, *to),
                       link_layer_of(to->is_ethernet()));
  }
  if (!fabric.graph().reaches(from, *to)) {
    return fmt::format("no cable leads from {} to {}", port_text(fabric, from),
                       port_text(fabric, *to));
  }
  if (!share_partition(from, *to)) {
    return fmt::format("{} and {} have no partition in common (`softib partition add`)",
                       port_text(fabric, from), port_text(fabric, *to));
  }
  return {};
}

std::string rejection_text(std::uint16_t reason) {
  const cm::ReasonText text = cm::reason_text(static_cast<cm::RejectReason>(reason));
  return fmt::format("refuses the connection: {} (reason {}, {}); check {}", text.sentence, reason,
                     text.name, text.check);
}

std::string datagram_refusal_text(std::uint32_t status) {
  const cm::ReasonText text = cm::status_text(static_cast<cm::SidrStatus>(status));
  return fmt::format("refuses the datagram service: {} (status {}, {}); check {}", text.sentence,
                     status, text.name, text.check);
}

std::string rejection_text(std::uint16_t reason, std::string_view cause) {
  if (cause.empty()) return rejection_text(reason);
  const cm::ReasonText text = cm::reason_text(static_cast<cm::RejectReason>(reason));
  return fmt::format("refuses the connection: {} (reason {}, {})", cause, reason, text.name);
}

std::string datagram_refusal_text(std::uint32_t status, std::string_view cause) {
  if (cause.empty()) return datagram_refusal_text(status);
  const cm::ReasonText text = cm::status_text(static_cast<cm::SidrStatus>(status));
  return fmt::format("refuses the datagram service: {} (status {}, {})", cause, status, text.name);
}

std::string message_text(const Unanswered& message) {
  const auto name = [&message] {
    switch (message.kind) {
      case Unanswered::Kind::Req: return "REQ";
      case Unanswered::Kind::Rep: return "REP";
      case Unanswered::Kind::SidrReq: return "SIDR_REQ";
      case Unanswered::Kind::Dreq: return "DREQ";
      case Unanswered::Kind::None: break;
    }
    return "a message";
  };
  if (message.times_sent == 0) return name();
  return fmt::format("{} (sent {} time{})", name(), message.times_sent,
                     message.times_sent == 1 ? "" : "s");
}

std::string not_own_text(const fabric::Node& node, const EndpointAddress& address) {
  return fmt::format("{} is not an address of {}, which has {}", verbs::address_text(address.ip),
                     node.name, addresses_of(node));
}

}  // namespace ib::services::rdma_cm
