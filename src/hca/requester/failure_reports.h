// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FailureReports: reports to the trace of requests that failed and of messages that were dropped
// (`softib trace`, `softib explain`).
#pragma once

#include "hca/memory/poster_host.h"
#include "hca/requester/outcome.h"
#include "hca/requester/send_wqe.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::hca {

class FailureReports {
 public:
  FailureReports(PosterHost& host, const RequesterConfig& config)
      : host_(host), qp_(config.qp), type_(config.type) {}

  // `peer`: the number of the queue pair at the other end.
  void failed(const SendWqe& wqe, const Outcome& outcome, std::uint32_t peer,
              std::uint32_t times = 1);
  // The sender's completion is a success, as on a wire; so only the trace reports the loss. It is
  // reported by its cause, less and less often (verbs/report_count.h).
  void dropped(const SendWqe& wqe, const Outcome& outcome, std::uint32_t peer);

 private:
  static constexpr std::size_t kCauses = 64;
  PosterHost& host_;
  std::uint32_t qp_;
  verbs::QpType type_;
  std::array<std::uint32_t, kCauses> drops_{};
};

}  // namespace ib::hca
