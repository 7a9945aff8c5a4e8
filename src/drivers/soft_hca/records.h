// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd's record of every process, file and object. It decides; device memory, which clients can
// write, holds copies of it and the state that only posters have.
//
// Life of an object: created, `making` until the answer; possibly `busy` while a request on it
// waits for posters; `dying` once its end has begun (no new use, posters cannot find it); destroyed
// after quiescence. A request that waits in between finds it again by index and serial, since a
// teardown may be faster. References are counts; an object with a count is not destroyed on request
// (DeviceBusy). Pointers between objects follow the counts, so they are valid for as long as both
// exist.
#pragma once

#include "fabric/model.h"
#include "hca/layout/layout.h"
#include "io/irp_queue.h"
#include "platform/control_channel.h"
#include "verbs/control.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ib::drivers {

namespace control = verbs::control;

struct HcaFile;

// In the order of teardown.
enum class Kind : std::uint32_t { Qp, Srq, Cq, Ah, Window, Region, DeviceMemory, Xrcd, Pd };
inline constexpr std::size_t kKinds = 9;
const char* kind_name(Kind kind);  // "queue pair"

struct Object {
  std::uint32_t index = 0;
  std::uint32_t handle = 0;
  std::uint64_t serial = 0;
  HcaFile* file = nullptr;  // the creator's
  bool making = false;      // its creation waits for posters: its client has no handle of it yet
  bool busy = false;
  bool dying = false;
};

struct Pd : Object {
  std::uint32_t regions = 0;
  std::uint32_t windows = 0;
  std::uint32_t qps = 0;
  std::uint32_t srqs = 0;
  std::uint32_t ahs = 0;
};

struct Dm : Object {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t regions = 0;
};

// A memory region or window: an entry of the key table.
struct Key : Object {
  Kind kind = Kind::Region;
  Pd* pd = nullptr;
  Dm* dm = nullptr;
  std::uint32_t key = 0;
  std::uint32_t access = 0;
  std::uint64_t address = 0;
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  std::uint64_t ranges = 0;  // its RangeList, a piece of device memory; 0: it is one range
};

struct Ah : Object {
  Pd* pd = nullptr;
};

struct Cq : Object {
  std::uint32_t generation = 0;
  std::uint32_t channel = control::kNoIndex;
  std::uint32_t cqe = 0;
  std::uint32_t slots = 0;
  std::uint64_t ring = 0;
  std::uint64_t cookie = 0;
  std::uint32_t qps = 0;  // queue pairs that use it, each counted once per role
  std::uint32_t srqs = 0;
  std::uint32_t producers = 0;  // see add_producers()
  bool shared = false;          // producers take the lock, by device memory
  bool shared_settled = false;  // ... and every producer has seen it
  bool in_error = false;        // CqErr has been raised
};

struct Xrcd : Object {
  std::uint64_t inode = 0;
  std::uint64_t device = 0;
  std::uint32_t ca = 0;
  std::map<HcaFile*, std::uint32_t> openers;  // how often each has it open
  std::uint32_t qps = 0;
  std::uint32_t srqs = 0;
};

struct Srq : Object {
  std::uint32_t generation = 0;
  verbs::SrqType type = verbs::SrqType::Basic;
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;
  Cq* cq = nullptr;
  std::uint32_t srqn = 0;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t slots = 0;
  std::uint32_t stride = 0;
  std::uint64_t ring = 0;
  std::uint64_t cookie = 0;
  std::uint32_t qps = 0;
};

// The counters of a queue pair in device memory (hca/layout/layout.h).
struct QpTraffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sends = 0;
  std::uint64_t more_packets = 0;
  std::uint64_t more_bytes = 0;
  std::uint64_t multicast = 0;
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t read_more_packets = 0;
  std::uint64_t read_more_bytes = 0;
  std::uint64_t atomics = 0;
  std::uint64_t received_messages = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t unicast_packets = 0;
  std::uint64_t unicast_bytes = 0;
};

struct Qp : Object {
  // A file that has it: its creator's, and for XRC receive QPs those that opened it.
  struct Holder {
    HcaFile* file = nullptr;
    std::uint64_t cookie = 0;
    std::uint32_t count = 1;
  };
  std::vector<Holder> holders;
  std::uint32_t qpn = 0;
  std::uint32_t generation = 0;
  verbs::QpType type = verbs::QpType::Rc;
  bool takes_large = false;       // control::qp_flag::kTakesLarge
  std::uint8_t special_port = 0;  // Smi, Gsi: whose queue pair 0 or 1 it is
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  Xrcd* xrcd = nullptr;
  control::QpCaps caps;
  std::uint64_t rq_ring = 0;
  std::uint32_t rq_slots = 0;
  std::uint32_t rq_stride = 0;
  control::QpAttr attr;          // attr.state: as softibd last set it (device memory may be ahead)
  std::uint64_t connection = 0;  // changes with Reset and with each new peer
  bool draining = false;         // SQD, posters not yet quiescent
  std::set<std::uint32_t> groups;  // multicast entries
  QpTraffic counted;               // what the totals of ports have already (traffic.h)
  // Of a connection through switches: the ports that its packets pass, by their indexes in the
  // graph (fabric/forwarding/data_way.h).
  std::vector<std::uint32_t> way;
  std::uint32_t way_end = hca::kNone;  // where they end before the peer
};

// The neighbours of a multicast attachment in a chain of those with the same hash.
struct McastNeighbours {
  std::uint32_t before = hca::kNone;
  std::uint32_t after = hca::kNone;
};

struct McastGroupEntry : Object {
  verbs::Gid mgid{};
  std::uint16_t mlid = 0;
  McastNeighbours by_gid;
  McastNeighbours by_lid;
  Qp* qp = nullptr;
};

struct Session;

struct Channel {
  std::uint32_t index = 0;
  std::uint32_t handle = 0;
  std::uint64_t serial = 0;
  Session* session = nullptr;
  std::uint32_t generation = 0;
  platform::NativeHandle read_end;
  platform::NativeHandle write_end;
  std::uint32_t cqs = 0;
};

struct Backing {
  std::uint32_t index = 0;
  std::uint32_t handle = 0;
  std::uint64_t serial = 0;
  Session* session = nullptr;
  std::uint32_t generation = 0;
  std::uint64_t size = 0;
  platform::NativeHandle file;
};

// An open file of an HCA. Outlives the FileObject until its objects are gone.
struct HcaFile {
  Session* session = nullptr;
  std::uint32_t number = 0;
  fabric::Hca* hca = nullptr;
  bool closing = false;
  bool removed = false;  // its HCA was pulled out: what is left is to destroy and to close
  std::array<std::set<std::uint32_t>, kKinds> objects;  // indexes by Kind

  std::set<std::uint32_t>& of(Kind kind) { return objects[static_cast<std::size_t>(kind)]; }
};

// A connection. Most attach and become a process of a virtual host; tools do not.
struct Session {
  std::uint64_t id = 0;
  std::uint32_t pid = 0;
  std::string program;
  const fabric::Node* node = nullptr;
  std::uint32_t slot = hca::kNone;
  std::uint32_t generation = 0;
  bool ending = false;
  bool buried = false;                          // its threads execute nothing any more
  std::vector<std::shared_ptr<HcaFile>> files;  // shared with teardowns under way
  std::set<std::uint32_t> channels;
  std::set<std::uint32_t> backings;
  std::deque<control::EventOut> events;
  std::uint64_t events_lost = 0;
  bool wants_ca_events = false;
  bool wants_attention = false;
  io::IrpQueue waiters;  // WaitEvent requests, of this or another connection
};

}  // namespace ib::drivers
