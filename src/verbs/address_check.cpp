// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/address_check.h"

#include "verbs/gid.h"

#include <fmt/format.h>

namespace ib::verbs {
namespace {

const char* name_of(LinkLayer layer) {
  return layer == LinkLayer::Ethernet ? "an Ethernet port" : "an InfiniBand port";
}

std::string check_destination(const AddressBook& book, LinkLayer layer, AddressVector& av) {
  if (is_multicast(av.dgid)) return {};  // groups are found by their GID
  const AddressBook::Owner owner = book.owner_of(av.dgid);
  if (owner.link_layer == LinkLayer::Unspecified) {
    return fmt::format("no port of this fabric has the destination GID {}", address_text(av.dgid));
  }
  if (owner.link_layer != layer) {
    return fmt::format("the destination GID {} is of {}, and this is {}: no link joins them",
                       address_text(av.dgid), name_of(owner.link_layer), name_of(layer));
  }
  if (owner.segment != book.segment(av.port)) {
    return fmt::format(
        "the destination GID {} is of a port that port {} does not reach: one of them has a cable, "
        "and a cable leads to its other end only (`softib status`)",
        address_text(av.dgid), av.port);
  }
  av.dlid = owner.lid;
  return {};
}

}  // namespace

std::string check_address(const AddressBook& book, AddressVector& av) {
  if (av.port == 0 || av.port > book.ports()) {
    return fmt::format("address vector: port {}; this HCA has 1 to {}", av.port, book.ports());
  }
  const LinkLayer layer = book.link_layer(av.port);
  const bool is_ethernet = layer == LinkLayer::Ethernet;
  av.flow_label &= 0xfffff;
  std::string wrong;
  if (av.is_global == 0 && is_ethernet) {
    wrong =
        "an Ethernet port needs a global address: is_global 1, the GID of the other side "
        "(ibv_query_gid) and sgid_index";
  } else if (av.is_global != 0 && is_zero(book.gid(av.port, av.sgid_index))) {
    wrong = fmt::format("sgid_index {}: port {} has no GID there", av.sgid_index, av.port);
  } else if (av.sl > 15) {
    wrong = fmt::format("service level {} is above 15", av.sl);
  } else if (av.is_global == 0 && av.dlid == 0) {
    wrong = "LID 0 names no port; give the LID of the other side's port (ibv_query_port)";
  } else if (is_ethernet || av.dlid == 0) {
    av.dlid = 0;
    wrong = check_destination(book, layer, av);
  }
  return wrong.empty() ? wrong : "address vector: " + wrong;
}

}  // namespace ib::verbs
