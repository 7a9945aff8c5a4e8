// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Removal: one removal that may be refused, from the query to its end.
#pragma once

#include "io/pnp_manager.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ib::io {

class PnpManager::Removal {
 public:
  Removal(std::vector<std::uint64_t> tops, Done done, Before before)
      : tops_(std::move(tops)), done_(std::move(done)), before_(std::move(before)) {}

 private:
  friend class PnpManager;
  enum class Phase : std::uint8_t { Waiting, Asking, Removing, Over };

  std::vector<std::uint64_t> tops_;
  Done done_;
  Before before_;
  Phase phase_ = Phase::Waiting;
  bool cancelled_ = false;
  std::vector<std::uint64_t> nodes_;  // all of it, children first
  std::vector<std::uint64_t> asked_;  // those that agreed, or have no driver
  Status veto_ = Status::Ok;
  std::string reason_;
};

}  // namespace ib::io
