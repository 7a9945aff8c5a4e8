// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scribbler: device memory as a hostile process of the fabric maps it, which can write anything
// anywhere. It finds the mapping that this process's client library has.
#pragma once

#include "hca/layout/arena.h"

#include <memory>

namespace ib::conformance {

class Scribbler {
 public:
  Scribbler();

  hca::QpEntry& qp(std::uint32_t qpn) const { return *arena_.qp(hca::qp_index(qpn)); }
  // Writes a completion where the queue expects the next one. All members of `cqe` count except
  // seq.
  void forge(std::uint32_t cq_index, const hca::Cqe& cqe) const;

 private:
  class File;
  std::unique_ptr<hca::ArenaFile> file_;
  hca::Arena arena_;
};

}  // namespace ib::conformance
