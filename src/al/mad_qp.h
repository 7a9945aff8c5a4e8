// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MadQp: a queue pair that moves MADs [IBA1 13.4.2, 13.5], with all that it needs: buffers in
// device memory, a completion queue, receives that are always posted. It is queue pair 0 or 1 of a
// port, or one of its own that talks to queue pairs 1. The meaning of a MAD, its
// answer and its loss are the caller's business.
#pragma once

#include "al/mad_objects.h"
#include "al/mad_send_ring.h"
#include "al/refusal.h"
#include "al/verbs.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace ib::al {

// The global route of a MAD [IBA1 8.3]: by GID, which is the only way between Ethernet ports.
struct MadRoute {
  verbs::Gid gid{};             // of the other end
  std::uint8_t sgid_index = 0;  // of the own end, in its port's table
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  bool operator==(const MadRoute&) const = default;
};

// Where a MAD goes to, or came from: an answer goes to the address from which its request came.
struct MadAddress {
  std::uint16_t lid = 0;  // 0: by the route's GID, as always on Ethernet
  std::uint8_t sl = 0;
  std::uint32_t qpn = 1;
  std::uint32_t qkey = verbs::kGsiQkey;  // of the receiver; not known of one that came
  std::uint16_t pkey_index = 0;          // in the own port's table
  std::optional<MadRoute> route{};
  std::uint8_t path_bits = 0;  // which of the own port's LIDs
  bool operator==(const MadAddress&) const = default;
};

class IB_DRIVER_API MadQp {
 public:
  using Options = MadQpOptions;
  // Both are called at dispatch level and may call anything here, also close(); but the MadQp has
  // to outlive the call. `mad` is valid during the call.
  using OnReceive =
      std::function<void(const MadAddress& from, std::span<const std::byte, kMadBytes> mad)>;
  using OnSent = std::function<void(std::uint64_t context, verbs::WcStatus status)>;

  MadQp() = default;
  MadQp(const MadQp&) = delete;
  MadQp& operator=(const MadQp&) = delete;
  ~MadQp() { IB_ASSERT(!irp_ && !is_open()); }

  void set_on_receive(OnReceive on_receive) { on_receive_ = std::move(on_receive); }
  void set_on_sent(OnSent on_sent) { on_sent_ = std::move(on_sent); }

  // Makes and readies everything. A cancellation acts between the steps. InvalidState: it is
  // open, or being opened or closed; else the status of the request that has failed.
  void open(Ca& ca, const Options& options, io::IrpRef irp);
  // Ok also if it is not open. MADs on their way are given up.
  void close(io::IrpRef irp);
  // For an owner who is about to close the CA, which takes all of this away: ends an open() or
  // close() with Cancelled, by and by, and forgets what there is without a request. The MadQp has
  // to outlive Ca::close().
  void abandon();
  bool is_open() const { return open_; }
  bool is_busy() const { return irp_.has_value(); }  // being opened or closed
  std::uint32_t qpn() const;                         // as others name it

  // Copies the MAD and sends it. InvalidState: not open; LimitExceeded: `depth` are on their way.
  Status send(const MadAddress& to, std::span<const std::byte, kMadBytes> mad,
              std::uint64_t context = 0);

 private:
  using Step = MadObjects::Step;

  void advance();
  void retreat();
  static void advanced(io::Irp& irp, void* context);
  static void retreated(io::Irp& irp, void* context);
  void ready();
  void take_completions();
  void sent(const hca::Completion& completion);
  void received(const hca::Completion& completion);
  MadAddress source_of(const hca::Completion& completion, const std::byte* header) const;
  Status post(std::size_t slot);

  Ca* ca_ = nullptr;
  Options options_;
  OnReceive on_receive_;
  OnSent on_sent_;
  MadObjects objects_;
  MadSendRing sends_;
  Step step_ = Step::Pd;
  bool open_ = false;
  bool abandoned_ = false;
  std::optional<io::IrpRef> irp_;  // of open() or close()
  io::Irp request_;                // the step that is under way
  Refusal refusal_;
};

}  // namespace ib::al
