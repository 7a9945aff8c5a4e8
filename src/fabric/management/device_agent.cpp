// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/device_agent.h"

#include "mad/class_port_info.h"
#include "mad/device_management.h"
#include "mad/gmp_answer.h"

namespace ib::fabric {

mad::Mad answer_device_management(const mad::Mad& request) {
  constexpr std::uint32_t kResponseTime = 18;  // 4.096 us * 2^n
  namespace status = mad::mad_status;
  const mad::MadHeader header = mad::header_of(request);
  if (header.method != mad::method::kGet) {
    return mad::gmp_answer(request, header.method == mad::method::kSet
                                        ? status::kAttributeNotSupported
                                        : status::kMethodNotSupported);
  }
  if (header.attribute == mad::kClassPortInfo) {
    mad::ClassPortInfo info;
    info.capability_mask2_response_time = kResponseTime;
    return mad::gmp_answer_with(request, info);
  }
  if (header.attribute == mad::device_attribute::kIoUnitInfo) {
    return mad::gmp_answer_with(request, mad::IoUnitInfo());
  }
  return mad::gmp_answer(request, status::kAttributeNotSupported);
}

}  // namespace ib::fabric
