// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The answer of a general service to a Get or a Set.
#pragma once

#include "mad/header.h"
#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace ib::mad {

// The request with another method and status, as one packet: a refusal, or an answer whose
// attribute is to be filled in. The request is at least a header long.
inline Mad gmp_answer(std::span<const std::byte> request, std::uint16_t status) {
  Mad answer{};
  std::copy_n(request.begin(), std::min(request.size(), answer.size()), answer.begin());
  MadHeader header = header_of(answer);
  header.method = method::kGetResp;
  header.status = status;
  std::memcpy(answer.data(), &header, sizeof header);
  if (has_rmpp(header.mgmt_class)) set_rmpp_header(answer, {});
  return answer;
}

// The answer with this attribute, and zeros behind it.
template <class Attribute>
Mad gmp_answer_with(std::span<const std::byte> request, const Attribute& attribute) {
  static_assert(alignof(Attribute) == 1);
  Mad answer = gmp_answer(request, mad_status::kOk);
  const std::size_t offset = attribute_offset(header_of(answer).mgmt_class);
  std::fill(answer.begin() + static_cast<std::ptrdiff_t>(offset), answer.end(), std::byte{0});
  std::memcpy(answer.data() + offset, &attribute, sizeof attribute);
  return answer;
}

}  // namespace ib::mad
