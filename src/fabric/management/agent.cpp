// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/agent.h"

#include "fabric/management/apply_set.h"
#include "fabric/management/element_view.h"

#include <bit>
#include <chrono>

namespace ib::fabric {
namespace {

// A lease runs from the first wrong M_Key on. At its end everybody may read the key, so that a new
// manager can begin where the last one has died.
void run_lease(mad::PortSettings& settings, Instant& end, Instant now) {
  if (now < end) return;
  settings.m_key_protect = 0;
  end = Instant::max();
}

void count_violation(mad::PortSettings& settings, Instant& end, Instant now) {
  if (settings.m_key_violations != 0xffff) ++settings.m_key_violations;
  if (settings.m_key_lease != 0 && end == Instant::max()) {
    end = now + std::chrono::seconds(settings.m_key_lease);
  }
}

}  // namespace

mad::Handled handle_smp(Fabric& fabric, Port& at, const mad::Mad& request, Instant now,
                        mad::Mad& response, PortChanges& changes) {
  Graph& graph = fabric.graph();
  Port& keeper = graph.end_port_of(at);
  run_lease(keeper.settings, keeper.m_key_lease_end, now);
  const ElementView view(graph, graph.element_of(at));
  const auto arrival = static_cast<std::uint8_t>(at.number);
  mad::Handled handled = mad::answer(view, arrival, request, response);
  if (handled.verdict == mad::Verdict::BadKey) {
    count_violation(keeper.settings, keeper.m_key_lease_end, now);
    return handled;
  }
  const auto smp = std::bit_cast<mad::Smp>(request);
  const bool has_key = smp.m_key == keeper.settings.m_key;
  if (has_key) keeper.m_key_lease_end = Instant::max();
  if (handled.verdict != mad::Verdict::Set) return handled;
  apply_set(fabric, at, smp, changes);
  mad::finish_set(view, arrival, request, response);
  return {mad::Verdict::Answered, {}};
}

}  // namespace ib::fabric
