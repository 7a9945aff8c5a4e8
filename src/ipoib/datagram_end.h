// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DatagramEnd: the datagram queue pair of an interface with its receive buffers.
//
// A received message lies behind the 40 bytes of a GRH, whether it has one or not.
// Thread rule: one thread at a time.
#pragma once

#include "ipoib/registered_memory.h"
#include "ipoib/station.h"
#include "ipoib/transmitter.h"
#include "ulp/ipoib/interface.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace ib::ipoib::driver {

class DatagramEnd {
 public:
  static constexpr std::uint32_t kReceives = 256;
  static constexpr std::uint32_t kSends = 512;

  // Not started: the queue pair is in Reset.
  static Result<std::unique_ptr<DatagramEnd>> create(const Station& station,
                                                     const Objects& objects);
  DatagramEnd(const DatagramEnd&) = delete;
  DatagramEnd& operator=(const DatagramEnd&) = delete;
  ~DatagramEnd();

  Qpn qpn() const { return Qpn{queue_pair_->qpn()}; }
  bool is_broken() const;

  // To Rts with all receives posted, from any state: requests under way end without completions.
  Status start(std::uint16_t pkey_index, Transmitter& transmitter);
  // To Reset: it belongs to no partition and has no receives.
  Status stop(Transmitter& transmitter);
  // That of the groups.
  Status set_qkey(Qkey qkey);
  Qkey qkey() const { return qkey_; }
  Status attach(const Gid& mgid, Lid mlid);
  Status detach(const Gid& mgid, Lid mlid);

  bool takes_large(const HardwareAddress& to) const;
  bool send(Transmitter& transmitter, const AddressVector& to, Qpn qpn, Qkey qkey,
            const Outgoing& message);

  // To the trace of softibd.
  void tell(const Report& report);

  struct Received {
    DatagramSource source;
    Message message;
  };
  // Of a receive that has succeeded. Returns nothing if it makes no sense. The buffer is that of
  // `wr_id` until post_receive().
  std::optional<Received> read(const user::Completion& completion);
  void post_receive(std::uint64_t wr_id);

 private:
  DatagramEnd(const Station& station, std::unique_ptr<RegisteredMemory> memory,
              std::unique_ptr<user::QueuePair> queue_pair)
      : station_(station), memory_(std::move(memory)), queue_pair_(std::move(queue_pair)) {}
  std::span<std::byte> buffer(std::uint64_t wr_id) const;
  Status modify(std::uint32_t mask, const user::control::QpAttr& attr);

  Station station_;
  std::unique_ptr<RegisteredMemory> memory_;
  std::unique_ptr<user::QueuePair> queue_pair_;
  Qkey qkey_{0x0b1b};  // before the broadcast group is joined
  user::SendWqe request_;
};

}  // namespace ib::ipoib::driver
