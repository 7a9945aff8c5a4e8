// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DropReports: counts the MADs that communication managers drop, by the reason, and reports some of
// them as lines of the trace (verbs/report_count.h).
#pragma once

#include "services/cm/drop_words.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace ib::services {

class DropReports {
 public:
  // `times` of this kind since the last line.
  using OnDrop = std::function<void(std::string line, std::uint32_t times)>;
  void set_on_drop(OnDrop on_drop) { on_drop_ = std::move(on_drop); }

  // `hca` has the communication manager.
  void count(const fabric::Fabric& fabric, const fabric::Hca& hca, CmDrop why, const mad::Mad& mad,
             const cm::MadAddress& from);

 private:
  OnDrop on_drop_;
  std::array<std::uint32_t, kCmDrops> drops_{};  // by CmDrop
};

}  // namespace ib::services
