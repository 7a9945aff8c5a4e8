// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/cm/drop_reports.h"

#include "verbs/report_count.h"

namespace ib::services {

void DropReports::count(const fabric::Fabric& fabric, const fabric::Hca& hca, CmDrop why,
                        const mad::Mad& mad, const cm::MadAddress& from) {
  std::uint32_t& count = drops_[static_cast<std::size_t>(why)];
  if (count < 0xffff'ffff) ++count;
  const std::uint32_t times = verbs::report_count(count);
  if (times != 0 && on_drop_) on_drop_(drop_text(fabric, hca, why, mad, from), times);
}

}  // namespace ib::services
