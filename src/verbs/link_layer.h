// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Link layers as users write them.
#pragma once

#include "verbs/types.h"

#include <string_view>

namespace ib::verbs {

constexpr const char* link_layer_name(LinkLayer layer) {
  switch (layer) {
    case LinkLayer::InfiniBand: return "infiniband";
    case LinkLayer::Ethernet: return "ethernet";
    case LinkLayer::Unspecified: break;
  }
  return "unspecified";
}

// Unspecified: no link layer has that name.
constexpr LinkLayer link_layer_of(std::string_view name) {
  for (const LinkLayer layer : {LinkLayer::InfiniBand, LinkLayer::Ethernet}) {
    if (name == link_layer_name(layer)) return layer;
  }
  return LinkLayer::Unspecified;
}

}  // namespace ib::verbs
