// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MadObjects: the objects of a queue pair for MADs, made one after the other and destroyed in the
// opposite order: protection domain, buffers in device memory and their region, completion queue,
// queue pair.
#pragma once

#include "al/verbs.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::al {

using verbs::kMadBytes;

struct MadQpOptions {
  verbs::QpType type = verbs::QpType::Ud;  // or Smi, Gsi: queue pair 0 or 1
  std::uint32_t port = 1;
  std::uint32_t depth = 64;  // MADs that may be on their way, and receives that are posted
  // Of so many MADs in a row that are sent, all but the last may be reported with it; at most
  // `depth`. A report is an event of the completion queue.
  std::uint32_t report_every = 1;
};

class MadObjects {
 public:
  enum class Step { Pd, Memory, Region, Cq, Qp, Init, Rtr, Rts, Ready };

  // Requests one step, which is none of Ready.
  void begin(Step step, Ca& ca, const MadQpOptions& options, io::IrpRef irp);
  bool exist() const { return pd_.exists(); }  // any of them: it is the first
  // Destroys the newest object that exists.
  void destroy_newest(io::IrpRef irp);
  // They went with their HCA, or will.
  void forget();

  Cq& cq() { return cq_; }
  Qp& qp() { return qp_; }
  const Qp& qp() const { return qp_; }
  // Buffers 0 .. depth - 1 are for receives, the others for sends.
  hca::Sge buffer(const MadQpOptions& options, std::size_t slot) const;
  std::byte* bytes(const hca::Sge& buffer) const { return memory_.bytes + buffer.address; }

 private:
  void modify(verbs::QpState state, std::uint32_t mask, io::IrpRef irp);

  Pd pd_;
  DeviceMemory memory_;
  Region region_;
  Cq cq_;
  Qp qp_;
  control::AllocDmIn room_;  // of the step that is under way
  control::QpAttr attr_;
};

}  // namespace ib::al
