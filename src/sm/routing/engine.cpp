// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/engine.h"

#include "sm/routing/fat_tree.h"
#include "sm/routing/min_hop.h"
#include "sm/routing/torus.h"
#include "sm/routing/up_down.h"

#include <fmt/format.h>

#include <array>

namespace ib::sm {
namespace {

struct Name {
  Routing routing;
  std::string_view text;
};
constexpr std::array<Name, 5> kNames{{{Routing::Automatic, "automatic"},
                                      {Routing::MinHop, "min-hop"},
                                      {Routing::UpDown, "up/down"},
                                      {Routing::FatTree, "fat-tree"},
                                      {Routing::Torus, "torus"}}};

std::unique_ptr<Engine> make(Routing routing) {
  switch (routing) {
    case Routing::MinHop: return std::make_unique<MinHop>();
    case Routing::Automatic:
    case Routing::FatTree: return std::make_unique<FatTree>();
    case Routing::Torus: return std::make_unique<Torus>();
    case Routing::UpDown: break;
  }
  return std::make_unique<UpDown>();
}

}  // namespace

std::string_view routing_name(Routing routing) {
  return kNames[static_cast<std::size_t>(routing)].text;
}

std::optional<Routing> routing_of(std::string_view name) {
  for (const Name& each : kNames) {
    if (each.text == name) return each.routing;
  }
  return std::nullopt;
}

std::unique_ptr<Engine> choose_engine(Routing wanted, const Graph& graph, std::string& reason) {
  std::unique_ptr<Engine> engine = make(wanted);
  std::string why;
  if (engine->prepare(graph, why)) return engine;
  if (wanted != Routing::Automatic) {
    reason = fmt::format("routing is up/down, not {}: {}", engine->name(), why);
  }
  engine = make(Routing::UpDown);
  (void)engine->prepare(graph, why);
  return engine;
}

}  // namespace ib::sm
