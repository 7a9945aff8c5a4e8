// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/lifetime/leftovers.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

constexpr std::size_t kNamed = 8;  // of each kind; of the others there is only the number

// The objects that keep it from being destroyed: "used by 2 queue pairs".
std::string users(std::initializer_list<std::pair<std::uint32_t, Kind>> counts) {
  std::string text;
  for (const auto& [n, kind] : counts) {
    if (n != 0) text = list(text, fmt::format("{} {}{}", n, kind_name(kind), n == 1 ? "" : "s"));
  }
  return text.empty() ? text : fmt::format(" (used by {})", text);
}

std::string users_of(Core& core, Kind kind, std::uint32_t index) {
  switch (kind) {
    case Kind::Pd: {
      const Pd& pd = *core.pds.find(index);
      return users({{pd.regions, Kind::Region},
                    {pd.windows, Kind::Window},
                    {pd.qps, Kind::Qp},
                    {pd.srqs, Kind::Srq},
                    {pd.ahs, Kind::Ah}});
    }
    case Kind::Cq: {
      const Cq& cq = *core.cqs.find(index);
      return users({{cq.qps, Kind::Qp}, {cq.srqs, Kind::Srq}});
    }
    case Kind::Srq: return users({{core.srqs.find(index)->qps, Kind::Qp}});
    case Kind::DeviceMemory: return users({{core.dms.find(index)->regions, Kind::Region}});
    case Kind::Xrcd: {
      const Xrcd& xrcd = *core.xrcds.find(index);
      return users({{xrcd.qps, Kind::Qp}, {xrcd.srqs, Kind::Srq}});
    }
    case Kind::Qp:
    case Kind::Ah:
    case Kind::Window:
    case Kind::Region: break;
  }
  return {};
}

}  // namespace

std::vector<std::string> leftovers(Core& core, const Session& session, const HcaFile* only) {
  std::vector<std::string> lines;
  for (const auto& file : session.files) {
    if (file->closing || (only != nullptr && file.get() != only)) continue;
    std::string text;
    for (std::size_t k = 0; k < kKinds; ++k) {
      const auto kind = static_cast<Kind>(k);
      std::size_t n = 0;
      for (const std::uint32_t index : file->of(kind)) {
        if (++n > kNamed) break;
        text =
            list(text, fmt::format("{} {}{}", kind_name(kind), index, users_of(core, kind, index)));
      }
      const std::size_t all = file->of(kind).size();
      if (all > kNamed) text += fmt::format(" and {} more", all - kNamed);
    }
    if (text.empty()) continue;
    lines.push_back(fmt::format("{}{} HCA {} (file {}) with {}", describe(session),
                                only != nullptr ? " closes" : " ends and leaves", file->hca->name,
                                file->number, text));
  }
  return lines;
}

std::vector<std::string> leftovers_at_end(Core& core) {
  std::vector<std::string> lines;
  for (const auto& [id, session] : core.sessions) {
    lines.push_back(fmt::format("{} was not torn down", describe(*session)));
  }
  const std::pair<std::size_t, const char*> counts[] = {
      {core.pds.count(), kind_name(Kind::Pd)},
      {core.keys.count(), "key"},
      {core.ahs.count(), kind_name(Kind::Ah)},
      {core.dms.count(), kind_name(Kind::DeviceMemory)},
      {core.cqs.count(), kind_name(Kind::Cq)},
      {core.srqs.count(), kind_name(Kind::Srq)},
      {core.qps.count(), kind_name(Kind::Qp)},
      {core.xrcds.count(), kind_name(Kind::Xrcd)},
      {core.mcasts.count(), "multicast member"},
      {core.channels.count(), "completion channel"},
      {core.backings.count(), "backing"},
      {core.memory.heap().pieces(), "piece of the heap"}};
  for (const auto& [n, what] : counts) {
    if (n != 0) lines.push_back(fmt::format("objects that belong to nobody: {}: {}", what, n));
  }
  return lines;
}

}  // namespace ib::drivers
