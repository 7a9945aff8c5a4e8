// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamService: the streams of the fabric (docs/design/0030): makes them between TCP sockets that
// connect and TCP listeners of programs, hands their links to the programs, and buries them.
//
// A stream is a connection of the communication manager between two queue pairs that belong to
// softibd. Its requests (verbs/control_streams.h) come to device(), on file 0 of attached clients.
//
//   Connect: listener? -> StreamMaker -> both programs are answered
//   end:     both links are closed everywhere -> StreamBurial
//
// Thread rule: the executor's thread, dispatch level. Nothing here waits.
#pragma once

#include "io/device.h"
#include "services/streams/foreign_accepts.h"
#include "services/streams/stream_burial.h"
#include "services/streams/stream_hcas.h"
#include "services/streams/stream_listeners.h"
#include "services/streams/stream_maker.h"
#include "services/streams/stream_table.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ib::services {

// A connection of a program that stays TCP, or that another program has accepted without the
// switch.
struct StreamRefusal {
  std::string text;
  std::uint64_t session = 0;
  std::uint32_t pid = 0;
  std::string node;
  std::string peer;  // node
};

// For people (`softib connections`).
struct StreamListing {
  bool is_listener = false;
  std::uint64_t stream = 0;
  const char* state = "";
  std::string waits_for;  // in words; empty: for nothing
  std::uint64_t service_id = 0;
  struct End {
    std::uint32_t node = 0;
    std::uint32_t pid = 0;  // that has connected, accepted or listens; 0: nobody yet
    std::string program;
    std::uint32_t last_slot = 0;  // + 1: of the process that has worked with it last
    platform::TcpName name;
    const fabric::Port* port = nullptr;
    std::uint32_t qpn = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
  };
  std::array<End, 2> ends;  // of a listener: the first
  Duration age{};
};

struct StreamServiceOptions {
  std::function<std::uint32_t()> random;
  std::function<void(const StreamRefusal& refusal)> on_refused{};
  // The name of the program of a session, for people.
  std::function<std::string(std::uint64_t session)> program_of{};
};

class StreamService final : private StreamMaker::Owner, private StreamBurial::Owner {
 public:
  struct Parts {
    al::System& system;
    const fabric::Fabric& fabric;
    rdma_cm::Connector& connector;  // of service_ids()
    rdma_cm::Routes& routes;
    platform::StreamHost& host;
  };
  StreamService(const Parts& parts, StreamServiceOptions options);
  StreamService(const StreamService&) = delete;
  StreamService& operator=(const StreamService&) = delete;
  ~StreamService() override;  // closed

  // Of SDP, as CmConnector takes them.
  static std::vector<std::uint64_t> service_ids();
  io::DeviceObject& device() { return device_; }

  // The process of the session is over, in order or not, and its slot is repaired.
  void on_process_ended(std::uint64_t session, std::uint32_t slot);
  // As of StreamHcas.
  void let_go(const fabric::Hca& hca, std::function<void()> go) {
    hcas_.let_go(hca, std::move(go));
  }
  void let_back(const fabric::Hca& hca) { hcas_.let_back(hca); }
  // The end of softibd: all streams end. Once.
  void close(std::function<void()> done);

  std::vector<StreamListing> list() const;
  std::size_t size() const { return table_.all().size(); }

 private:
  static void control(io::DeviceObject& device, io::IrpRef irp);
  void dispatch(io::IrpRef irp);
  void listen(io::IrpRef irp, bool on);
  void connect(io::IrpRef irp);
  void accept(io::IrpRef irp);
  void open(io::IrpRef irp);
  void grow(io::IrpRef irp);
  // Refuses a Connect, and tells people why the connection to this address of `peer` stays TCP.
  void refuse(io::IrpRef irp, Status status, const platform::TcpName& remote,
              const fabric::Node& peer, const std::string& why);
  void answer(Stream& stream, std::uint32_t end, io::IrpRef irp);
  void claim(Stream& stream);
  void on_tcp_ended(std::uint64_t number);
  void on_foreign_accept(Stream& stream);
  StreamProgram program_of(const io::Client& client) const;

  // StreamMaker::Owner
  void on_refused_tcp(const StreamListeners::Key& listener) override;
  void on_made(Stream& stream) override;
  void on_failed(Stream& stream, Status status, const std::string& reason) override;
  void on_lost(Stream& stream) override { burial_.break_stream(stream); }
  void on_gone(const fabric::Hca& hca) override;
  // StreamBurial::Owner
  void on_ending(Stream& stream, bool was_open) override;
  void on_round() override;
  bool is_busy() const override { return maker_.is_busy(); }
  void on_none_left() override;

  Parts parts_;
  StreamServiceOptions options_;
  io::DriverObject driver_{"streams"};
  io::DeviceObject device_{driver_, "streams", io::DeviceKind::Functional};
  StreamListeners listeners_;
  StreamTable table_;
  ForeignAccepts foreign_accepts_;
  StreamHcas hcas_;
  StreamMaker maker_;
  StreamBurial burial_;
  std::function<void()> on_closed_;
  bool is_closing_ = false;
};

}  // namespace ib::services
