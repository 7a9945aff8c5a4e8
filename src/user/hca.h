// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hca: an opened HCA, over the process's main connection.
#pragma once

#include "user/process.h"

#include <atomic>
#include <map>

namespace ib::user {

class Hca {
 public:
  static Result<std::unique_ptr<Hca>> open(Process& process, std::uint64_t node_guid);
  ~Hca();  // closes the file; softibd tears down objects that still exist
  Hca(const Hca&) = delete;
  Hca& operator=(const Hca&) = delete;

  Process& process() { return process_; }
  std::uint32_t file() const { return file_; }  // as in EventOut::file
  const control::OpenOut& info() const { return info_; }
  const control::CaAttr& attributes() const { return attributes_; }

  Result<control::PortAttr> query_port(std::uint32_t port);
  Status modify_port(const control::ModifyPortIn& in);
  Result<control::GidOut> query_gid(std::uint32_t port, std::uint32_t index);
  Result<std::uint16_t> query_pkey(std::uint32_t port, std::uint32_t index);
  // From device memory, as it is now.
  bool has_pkey(std::uint32_t port, std::uint32_t index) const;
  Result<std::unique_ptr<ProtectionDomain>> alloc_pd();
  Result<std::unique_ptr<MemoryRegion>> register_memory(const control::RegMrIn& in);
  Result<std::unique_ptr<MemoryWindow>> alloc_window(const ProtectionDomain& pd,
                                                     std::uint32_t type);
  Result<std::unique_ptr<DeviceMemory>> alloc_device_memory(std::uint64_t length,
                                                            std::uint32_t log_align);
  Result<std::unique_ptr<AddressHandle>> create_ah(ProtectionDomain& pd,
                                                   const verbs::AddressVector& av);
  Result<std::unique_ptr<XrcDomain>> open_xrcd(const control::OpenXrcdIn& in);
  Result<std::unique_ptr<CompletionQueue>> create_cq(const control::CreateCqIn& in);
  Result<std::unique_ptr<SharedReceiveQueue>> create_srq(const SrqOptions& options);
  Result<std::unique_ptr<QueuePair>> create_qp(const QpOptions& options);
  Result<std::unique_ptr<QueuePair>> open_qp(const XrcDomain& xrcd, std::uint32_t qpn,
                                             std::uint64_t cookie);

  // Whether an object that was to be destroyed does not exist any more, with softibd or its HCA.
  static bool is_gone(Status destroyed) {
    return destroyed == Status::Ok || destroyed == Status::Disconnected ||
           destroyed == Status::DeviceRemoved;
  }
  void drop_address() { addresses_.fetch_sub(1, std::memory_order_relaxed); }
  // Helpers of the objects: a call on this HCA's file.
  template <class In>
  Status command(control::Code code, const In& in) {
    const auto done = process_.connection().call(code, file_, in);
    return done ? Status::Ok : done.error();
  }
  // Where a registration's memory is in this process, and how long.
  Status locate(const control::RegMrIn& in, const control::MrOut& out, std::byte*& address,
                std::uint64_t& length) const;
  void add_dm(std::uint32_t index, std::span<std::byte> bytes) { dms_[index] = bytes; }
  void remove_dm(std::uint32_t index) { dms_.erase(index); }

 private:
  std::string check_address(verbs::AddressVector& av) const;
  Status refuse_address(ProtectionDomain& pd, const verbs::AddressVector& av, std::string why);
  Hca(Process& process, std::uint32_t file, const control::OpenOut& info)
      : process_(process), file_(file), info_(info) {}

  Process& process_;
  std::uint32_t file_;
  control::OpenOut info_;
  control::CaAttr attributes_;
  std::atomic<std::uint32_t> addresses_{0};            // address handles
  std::map<std::uint32_t, std::span<std::byte>> dms_;  // under control_lock
};

}  // namespace ib::user
