output "server" {
  description = "address of the server in its network"
  value       = aws_instance.server.private_ip
}

output "agents" {
  description = "addresses of the agents"
  value       = aws_instance.agent[*].private_ip
}
