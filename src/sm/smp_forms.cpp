// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/smp_forms.h"

#include <algorithm>

namespace ib::sm {
namespace {

constexpr std::size_t kReturnPath = 64;  // in Smp::paths

bool is_directed(const mad::Smp& smp) {
  return smp.header.mgmt_class == mad::mgmt_class::kSubnDirected;
}

}  // namespace

mad::Smp directed_smp(std::uint8_t method, std::uint16_t attribute, std::uint32_t modifier,
                      std::uint64_t m_key, const Route& route, const mad::SmpData& data) {
  mad::Smp smp;
  smp.header = {mad::kBaseVersion,
                mad::mgmt_class::kSubnDirected,
                mad::kClassVersion,
                method,
                0,
                route.hops,
                std::uint64_t{0},
                attribute,
                0,
                modifier};
  smp.m_key = m_key;
  std::fill_n(smp.reserved.begin(), 4, std::uint8_t{0xff});  // DrSLID and DrDLID: permissive
  std::copy_n(route.ports.begin(), route.hops + 1, smp.paths.begin());
  smp.data = data;
  return smp;
}

Outgoing answer_to(const mad::Smp& request, std::uint16_t source, std::uint16_t status,
                   const mad::SmpData& data) {
  Outgoing out{request, is_directed(request) ? mad::kPermissiveLid : source};
  out.smp.header.method = mad::method::kGetResp;
  out.smp.header.status = static_cast<std::uint16_t>(
      status | (is_directed(request) ? mad::kDirectionBit : std::uint16_t{0}));
  out.smp.data = data;
  return out;
}

std::optional<Outgoing> request_back(const mad::Smp& request, std::uint16_t source,
                                     std::uint8_t method, std::uint32_t modifier,
                                     const mad::SmpData& data) {
  Route route;
  const std::uint16_t attribute = request.header.attribute;
  if (is_directed(request)) {
    route.hops = static_cast<std::uint8_t>(request.header.class_specific & 0xff);
    if (route.hops > mad::kMostHops) return std::nullopt;
    for (std::size_t i = 1; i <= route.hops; ++i) {
      route.ports[i] = request.paths[kReturnPath + route.hops + 1 - i];
    }
  } else if (source == 0 || source > kLastUnicastLid) {
    return std::nullopt;
  }
  Outgoing out;
  out.smp = directed_smp(method, attribute, modifier, 0, route, data);
  out.smp.header.transaction_id = request.header.transaction_id;
  if (!is_directed(request)) {
    out.lid = source;
    out.smp.header.mgmt_class = mad::mgmt_class::kSubnLid;
    out.smp.reserved = {};
  }
  return out;
}

}  // namespace ib::sm
